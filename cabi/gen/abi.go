package main

// The files of folder abi, which state what an ABI has chosen: abi/mpich.txt explains them.

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
)

// abis are the ABIs by the names of their files. The core uses the numbers of the first.
var abis = []string{"mpich", "openmpi", "mpi5"}

type abi struct {
	name      string
	title     string
	libraries []string // file names: the first is the library, others are links to it
	version   [2]string
	without   *regexp.Regexp // functions that the library does not have
	status    []string       // its words
	sentinels map[string]string
	pointers  bool // handles are pointers
	shift     int  // of the numbers of handles that calls make
	sizes     map[string]int
	variables [][]string
	addresses [][]string // variables that are pointers
	callbacks [][]string // a form, and the functions of this form
	aliases   [][]string
	constants []constant
}

// constant is a constant or a predefined object.
type constant struct {
	typ, name, value string
	fortran          int    // number of an object in Fortran, or -1
	core             string // name of an object in the core
	apart            bool   // an empty line comes before it
}

func readABI(name string) (*abi, error) {
	text, err := os.ReadFile("abi/" + name + ".txt")
	if err != nil {
		return nil, err
	}
	b := &abi{name: name, sentinels: map[string]string{}, sizes: map[string]int{}}
	apart := false
	for n, line := range strings.Split(string(text), "\n") {
		words := strings.Fields(line)
		switch {
		case len(words) == 0:
			apart = true
			continue
		case words[0] == "#":
			continue
		}
		if err := b.add(words, apart); err != nil {
			return nil, fmt.Errorf("abi/%s.txt:%d: %w", name, n+1, err)
		}
		apart = false
	}
	return b, nil
}

// add adds a line.
func (b *abi) add(words []string, apart bool) (err error) {
	rest := words[1:]
	switch words[0] {
	case "title":
		b.title = strings.Join(rest, " ")
	case "library":
		b.libraries = rest
	case "version":
		b.version = [2]string(rest)
	case "without":
		b.without, err = regexp.Compile(rest[0])
	case "status":
		b.status = rest
	case "sentinel":
		b.sentinels[rest[0]] = rest[1]
	case "handles":
		b.pointers = true
		b.shift, err = strconv.Atoi(rest[1])
	case "objects":
		b.sizes[rest[0]], err = strconv.Atoi(rest[1])
	case "variable":
		b.variables = append(b.variables, rest)
	case "pointer":
		b.addresses = append(b.addresses, rest)
	case "alias":
		b.aliases = append(b.aliases, rest)
	case "int":
		b.constants = append(b.constants, constant{typ: "int", name: rest[0], value: rest[1], apart: apart})
	default:
		if strings.HasSuffix(words[0], "_fn") {
			b.callbacks = append(b.callbacks, words)
			return nil
		}
		if len(rest) < 2 {
			return fmt.Errorf("want a type, a name and a value")
		}
		c := constant{typ: words[0], name: rest[0], value: rest[1], fortran: -1, core: rest[0], apart: apart}
		if len(rest) > 2 {
			c.fortran, err = strconv.Atoi(rest[2])
		}
		if len(rest) > 3 {
			c.core = rest[3]
		}
		b.constants = append(b.constants, c)
	}
	return err
}

// value returns the value of a constant.
func (b *abi) value(name string) string {
	for _, c := range b.constants {
		if c.name == name {
			return c.value
		}
	}
	return "-1"
}

// objects returns the predefined objects, each once, with the numbers that the core has for
// them. Files are pointers in the core too, and MPI_FILE_NULL is 0.
func (b *abi) objects(core *abi) (list []object, err error) {
	numbers := map[string]string{"MPI_FILE_NULL": "0"}
	for _, c := range core.constants {
		numbers[c.name] = c.value
	}
	seen := map[string]bool{}
	for _, c := range b.constants {
		if c.typ == "int" || seen[c.value] {
			continue
		}
		seen[c.value] = true
		number, ok := numbers[c.core]
		if !ok {
			return nil, fmt.Errorf("%s: the core has no %s", b.name, c.core)
		}
		list = append(list, object{c, number})
	}
	return list, nil
}

type object struct {
	constant
	number string
}

// kind returns the name that functions.txt has for the type of the object.
func (o *object) kind() string { return strings.ToLower(strings.TrimPrefix(o.typ, "MPI_")) }

// word returns the handle as C writes it.
func (o *object) word(b *abi) string {
	if len(b.sizes) > 0 {
		return "(uintptr_t)&" + o.value
	}
	return o.value
}

// functions returns what the library has of the functions.
func (b *abi) functions(all []function) (list []numbered) {
	for id, f := range all {
		if b.without == nil || !b.without.MatchString(f.name) {
			list = append(list, numbered{f, id})
		}
	}
	return list
}

// numbered is a function with the number that the core has for it.
type numbered struct {
	function
	id int
}
