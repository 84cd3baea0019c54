//go:build !race

package longcopy

// fastStrings reports a processor of Intel with enhanced REP MOVSB (ERMS). Those of AMD have
// it too, but there it depends on the distance of the addresses. The race detector observes
// only Go code, so it is built without.
var fastStrings = hasFastStrings()

func hasFastStrings() bool

// moveString copies n bytes by REP MOVSB.
//
//go:noescape
func moveString(to, from *byte, n int)
