package core

// Checks of arguments that functions.txt states.

// functionRow is a function of functions.txt.
type functionRow struct {
	name        string
	required    []requirement
	conversions []conversion
}

// requirement is the check of a parameter before the call.
type requirement struct {
	kind requiredKind
	at   int
}

type requiredKind uint8

const (
	address requiredKind = iota // not NULL
	aComm
	aIntracomm
	aIntercomm
	aGroup
	aWin
	aInfo
	aHints
	aSession
	aErrhandler
	aDatatype
)

// require records an error if a parameter is not what the function needs.
func (a *args) require(list []requirement) {
	for _, r := range list {
		switch r.kind {
		case address:
			a.results(r.at)
		case aComm:
			a.comm(r.at)
		case aIntracomm:
			a.intra(r.at)
		case aIntercomm:
			a.inter(r.at)
		case aGroup:
			a.group(r.at)
		case aWin:
			a.win(r.at)
		case aInfo:
			a.info(r.at)
		case aHints:
			a.hints(r.at)
		case aSession:
			a.session(r.at)
		case aErrhandler:
			a.errhandler(r.at)
		case aDatatype:
			a.datatype(r.at)
		}
	}
}
