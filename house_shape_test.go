package muster_test

import (
	"go/ast"
	"slices"
	"strings"
	"unicode"
)

// The shape of code: types and functions of a size that one can hold in mind, and functions
// that are named by what they do.

const (
	maxStruct   = 25 // fields of a type; group more by concern into types with their own methods
	maxFunction = 80 // lines of a function that is not a table
)

// bareNames are participles and prepositions that are names of Go or of MPI and read well where
// they are called, with the function that they follow.
var bareNames = map[string]string{
	"of":       "constructors and look-ups, as in reflect.TypeOf: Cost.Of(n)",
	"from":     "constructors and iterators from a position, as in io.WriterTo and netip.AddrFrom4",
	"with":     "a copy with something changed, as context.WithValue",
	"until":    "time.Until",
	"since":    "time.Since",
	"in":       "time.Time.In and reflect.Type.In",
	"Out":      "reflect.Type.Out",
	"Done":     "context.Context.Done",
	"Arrived":  "MPI_Parrived",
	"Indexed":  "MPI_Type_indexed",
	"Hindexed": "MPI_Type_create_hindexed",
	"Resized":  "MPI_Type_create_resized",
	"Failed":   "MPIX_Comm_get_failed: Comm.Failed()",
	"Near":     "a Reorder, which is an argument as Sum is: CartCreate(dims, periods, mpi.Near)",
}

// bareWords are participles that do not end in -ed, adverbs and prepositions. Those that are
// verbs as well (put, read, set, shut, split) are left out.
var bareWords = strings.Fields(`
	taken left came given known gone done made sent held kept lost found met seen begun drawn
	grown shown written chosen broken frozen woken driven spoken borne bound built bought brought
	caught dealt felt fed fought gotten heard hidden laid led lent lit meant paid rid said sold slept
	sought spent stood struck stuck swept sworn taught told thought thrown understood won wound
	over through apart both above across after against ahead along among around aside away back before behind
	below beneath beside between beyond by down during for from in inside into near of off on
	onto out outside past since than till to toward under until up upon via with within without
	here there then when where whence whose who whom what which why how
	yet still once again already also alone always ever never`)

// verbsInEd end as participles do.
var verbsInEd = strings.Fields("need feed seed speed exceed proceed succeed embed shed")

// checkShape checks the sizes of types and functions, and the names of functions.
func (h *house) checkShape(files []*source) {
	for _, s := range files {
		if s.test || ast.IsGenerated(s.file) {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.TypeSpec:
				h.checkStruct(n)
			case *ast.FuncDecl:
				h.checkFunction(n)
			}
			return true
		})
	}
}

func (h *house) checkStruct(spec *ast.TypeSpec) {
	typ, ok := spec.Type.(*ast.StructType)
	if !ok {
		return
	}
	fields := 0
	for _, f := range typ.Fields.List {
		if len(f.Names) == 0 {
			fields++
		}
		for _, name := range f.Names {
			if name.Name != "_" { // padding
				fields++
			}
		}
	}
	if fields > maxStruct {
		h.fault(h.at(spec), "type %s has %d fields, the limit is %d: group them by concern into types with their own methods", spec.Name.Name, fields, maxStruct)
	}
}

func (h *house) checkFunction(fn *ast.FuncDecl) {
	name := fn.Name.Name
	if lines := h.lines(fn); lines > maxFunction && !h.isTable(fn) {
		h.fault(h.at(fn), "function %s has %d lines, the limit is %d: split it by step", name, lines, maxFunction)
	}
	if isBare(name) && !isPredicate(fn.Type) {
		h.fault(h.at(fn), "function %s is named by a bare participle or preposition and does not return one bool: name it by a verb", name)
	}
}

// lines is the number of lines of a node.
func (h *house) lines(n ast.Node) int {
	return h.fset.Position(n.End()).Line - h.fset.Position(n.Pos()).Line + 1
}

// isTable reports whether a function is little more than one composite literal, in which no
// function is too long itself.
func (h *house) isTable(fn *ast.FuncDecl) bool {
	longest, tooLong := 0, false
	ast.Inspect(fn, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CompositeLit:
			longest = max(longest, h.lines(n))
		case *ast.FuncLit:
			tooLong = tooLong || h.lines(n) > maxFunction
		}
		return true
	})
	return !tooLong && 10*longest >= 9*h.lines(fn)
}

// isBare reports whether a name is one word, a participle, an adverb or a preposition, and no
// name of Go or MPI.
func isBare(name string) bool {
	word := strings.ToLower(name)
	if strings.LastIndexFunc(name, unicode.IsUpper) > 0 || bareNames[name] != "" || bareNames[word] != "" {
		return false
	}
	return slices.Contains(bareWords, word) ||
		strings.HasSuffix(word, "ed") && len(word) > 4 && !slices.Contains(verbsInEd, word)
}

// isPredicate reports whether a function returns one bool and nothing else.
func isPredicate(typ *ast.FuncType) bool {
	if typ.Results.NumFields() != 1 {
		return false
	}
	id, ok := typ.Results.List[0].Type.(*ast.Ident)
	return ok && id.Name == "bool"
}
