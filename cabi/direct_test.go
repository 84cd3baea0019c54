package cabi_test

import (
	"os"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/muster-mpi/muster/internal/direct"
)

// limits are the sizes of the tables of the front.
var limits = map[string]int{
	"MAX_COMMS": direct.MaxComms, "MAX_PEERS": direct.MaxPeers, "MAX_QUEUE": direct.MaxQueue,
	"MAX_RECEIVES": direct.MaxReceives, "MAX_TYPES": direct.MaxTypes,
}

// TestDirectLayout checks that the structs of front/direct.h have the fields of those of
// package direct, in the same order and of the same size. The sizes are those of 64-bit
// machines; on others the front does not use them.
func TestDirectLayout(t *testing.T) {
	header, err := os.ReadFile("front/direct.h")
	if err != nil {
		t.Fatal(err)
	}
	for name, n := range limits {
		if !regexp.MustCompile(name + " = " + strconv.Itoa(n) + `\b`).Match(header) {
			t.Errorf("direct.h does not have %s = %d", name, n)
		}
	}
	for name, typ := range map[string]reflect.Type{
		"muster_engine": reflect.TypeFor[direct.Engine](), "muster_peer": reflect.TypeFor[direct.Peer](),
		"muster_comm": reflect.TypeFor[direct.Comm](), "muster_receive": reflect.TypeFor[direct.Receive](),
		"muster_front": reflect.TypeFor[direct.Front](),
	} {
		want := fieldsOfC(t, string(header), name)
		if len(want) != typ.NumField() {
			t.Errorf("struct %s has %d fields, direct.%s %d", name, len(want), typ.Name(), typ.NumField())
			continue
		}
		for i, w := range want {
			f := typ.Field(i)
			if snake(f.Name) != w.name {
				t.Errorf("field %d of struct %s is %s, that of direct.%s %s", i, name, w.name, typ.Name(), f.Name)
			}
			of, elements := f.Type, 0
			if of.Kind() == reflect.Array {
				of, elements = of.Elem(), of.Len()
			}
			if w.elements != elements {
				t.Errorf("%s.%s has %d elements, in C %d", typ.Name(), f.Name, elements, w.elements)
			}
			if w.size != 0 && w.size != int(of.Size()) {
				t.Errorf("%s.%s has %d bytes, in C %d", typ.Name(), f.Name, of.Size(), w.size)
			}
		}
	}
}

// fieldOfC is a field of a struct. Its size is 0 if it is a struct, which is compared
// separately.
type fieldOfC struct {
	name           string
	size, elements int
}

func fieldsOfC(t *testing.T, header, name string) (fields []fieldOfC) {
	_, body, ok := strings.Cut(header, "struct "+name+" {\n")
	body, _, closed := strings.Cut(body, "\n};")
	if !ok || !closed {
		t.Fatalf("direct.h has no struct %s", name)
	}
	line := regexp.MustCompile(`^\t(struct \w+|\w+) (\**)(\w+)(\[(\w+)\])?;$`)
	for text := range strings.SplitSeq(body, "\n") {
		m := line.FindStringSubmatch(text)
		if m == nil {
			t.Fatalf("struct %s: the test cannot read %q", name, text)
		}
		f := fieldOfC{name: m[3], size: map[string]int{"uint64_t": 8, "int64_t": 8, "uint32_t": 4, "int32_t": 4}[m[1]]}
		if m[2] != "" {
			f.size = 8
		}
		f.elements = limits[m[5]]
		fields = append(fields, f)
	}
	return fields
}

// snake returns a name as C writes it.
func snake(name string) string {
	words := regexp.MustCompile(`[A-Z][a-z]*`).FindAllString(name, -1)
	return strings.ToLower(strings.Join(words, "_"))
}
