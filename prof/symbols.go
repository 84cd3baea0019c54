package prof

// Call sites of programs that are not written in Go. A rank locates the return address of
// a call in the file that is mapped there, because addresses differ from process to process.
// When the profile is complete, rank 0 reads the symbols and lines of the files, if it has
// them.

import (
	"cmp"
	"debug/dwarf"
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Objects locates addresses in the files that are mapped into this process.
type Objects struct{ maps []mapping }

type mapping struct {
	from, to, offset uint64
	file             string
}

// NewObjects returns an Objects without mappings; it reads them when it needs them.
func NewObjects() *Objects { return &Objects{} }

// Locate returns the file that is mapped at an address, and the offset in the file. Without
// such a file the offset is the address.
func (o *Objects) Locate(address uintptr) (file string, offset uint64) {
	if o.maps == nil {
		text, err := os.ReadFile("/proc/self/maps") // other systems do not have it
		if err != nil {
			text = nil
		}
		o.maps = append(parseMaps(string(text)), mapping{})
	}
	a := uint64(address)
	for _, m := range o.maps {
		if a >= m.from && a < m.to {
			return m.file, a - m.from + m.offset
		}
	}
	return "", a
}

// parseMaps parses the format of proc_pid_maps(5). Only mappings of files count.
func parseMaps(text string) (maps []mapping) {
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 6 || !strings.HasPrefix(f[5], "/") {
			continue
		}
		low, high, _ := strings.Cut(f[0], "-")
		var m mapping
		var errs [3]error
		m.from, errs[0] = strconv.ParseUint(low, 16, 64)
		m.to, errs[1] = strconv.ParseUint(high, 16, 64)
		m.offset, errs[2] = strconv.ParseUint(f[2], 16, 64)
		if errs == [3]error{} {
			m.file = strings.Join(f[5:], " ")
			maps = append(maps, m)
		}
	}
	return maps
}

// Resolve replaces the objects and offsets of call sites by functions, and by lines where the
// program has debug information. A site that is not found keeps the name of its file.
func (s *Summary) Resolve() {
	open := map[string]*symbols{}
	for i := range s.Sites {
		c := &s.Sites[i]
		if c.Object == "" && c.Offset == 0 {
			continue
		}
		t, seen := open[c.Object]
		if !seen {
			t = readSymbols(c.Object)
			open[c.Object] = t
		}
		c.Function, c.Site = t.lookup(c.Offset)
		if name := filepath.Base(c.Object); c.Site == "" {
			c.Site = fmt.Sprintf("%s+%#x", name, c.Offset)
		}
		c.Object, c.Offset = "", 0
	}
	for _, t := range open {
		t.close()
	}
	s.Sites = slices.Clip(s.Sites)
	sortSites(s.Sites)
}

// Site describes an address of machine code of this process: its line, where the program has
// debug information, or its object and offset; and the function, if it is known.
func Site(address uintptr) string {
	c := CallSite{}
	c.Object, c.Offset = NewObjects().Locate(address)
	s := Summary{Sites: []CallSite{c}}
	s.Resolve()
	if c = s.Sites[0]; c.Function == "" {
		return c.Site
	}
	return c.Site + " (" + c.Function + ")"
}

// symbols are the functions and lines of a file. A nil *symbols has none.
type symbols struct {
	file  *elf.File
	funcs []elf.Symbol // by address
	lines *dwarf.Data  // nil: none
}

// readSymbols reads a file of machine code; it returns nil if that is not possible.
func readSymbols(name string) *symbols {
	f, err := elf.Open(name)
	if err != nil {
		return nil
	}
	t := &symbols{file: f}
	static, _ := f.Symbols() // a stripped file has only the dynamic ones
	dynamic, _ := f.DynamicSymbols()
	for _, s := range append(static, dynamic...) {
		if elf.ST_TYPE(s.Info) == elf.STT_FUNC && s.Value != 0 {
			t.funcs = append(t.funcs, s)
		}
	}
	slices.SortStableFunc(t.funcs, func(a, b elf.Symbol) int { return cmp.Compare(a.Value, b.Value) })
	if section := f.Section(".debug_line"); section != nil && section.Size < mostLines {
		t.lines, _ = f.DWARF() // nil if it cannot be read
	}
	return t
}

// mostLines bounds the debug information that is read when a job ends.
const mostLines = 64 << 20

func (t *symbols) close() {
	if t != nil {
		t.file.Close()
	}
}

// lookup returns the function and line at an offset of the file, or "".
func (t *symbols) lookup(offset uint64) (function, line string) {
	if t == nil {
		return "", ""
	}
	address, found := uint64(0), false
	for _, p := range t.file.Progs {
		if p.Type == elf.PT_LOAD && offset >= p.Off && offset < p.Off+p.Filesz {
			address, found = offset-p.Off+p.Vaddr, true
		}
	}
	if !found {
		return "", ""
	}
	at, exact := slices.BinarySearchFunc(t.funcs, address, func(s elf.Symbol, a uint64) int { return cmp.Compare(s.Value, a) })
	if !exact {
		at--
	}
	if at >= 0 && at < len(t.funcs) && (t.funcs[at].Size == 0 || address < t.funcs[at].Value+t.funcs[at].Size) {
		function = t.funcs[at].Name
	}
	return function, t.line(address)
}

// line returns the line of an address.
func (t *symbols) line(address uint64) string {
	if t.lines == nil {
		return ""
	}
	r := t.lines.Reader()
	unit, err := r.SeekPC(address)
	if err != nil {
		return ""
	}
	lines, err := t.lines.LineReader(unit)
	if err != nil || lines == nil {
		return ""
	}
	var e dwarf.LineEntry
	if err := lines.SeekPC(address, &e); err != nil || e.File == nil {
		return ""
	}
	parts := strings.Split(e.File.Name, "/")
	return strings.Join(parts[max(0, len(parts)-2):], "/") + ":" + strconv.Itoa(e.Line)
}
