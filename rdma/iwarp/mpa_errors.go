package iwarp

// What can go wrong in MPA, with the code under which a Terminate reports it.

// mpaCode is an error code of a Terminate of layer LLP, type MPA (RFC 5044
// section 8, RFC 6581 section 8).
type mpaCode uint8

const (
	mpaConnectionLost  mpaCode = 1
	mpaBadCRC          mpaCode = 2
	mpaBadMarker       mpaCode = 3 // a marker and a length disagree
	mpaBadStartup      mpaCode = 4 // a request or reply that is none
	mpaLocalFault      mpaCode = 5
	mpaInsufficientIRD mpaCode = 6
	mpaNoMatchingRTR   mpaCode = 7
)

// mpaError is a fault of the peer in MPA.
type mpaError struct {
	code mpaCode
	text string
}

func (e *mpaError) Error() string { return "iwarp: MPA: " + e.text }
