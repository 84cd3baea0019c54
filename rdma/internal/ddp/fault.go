package ddp

import "fmt"

// Faults in the terms of the RFCs: RFC 5040 section 4.8 defines the layers, types and
// codes. A fault is represented by the number that a Terminate carries.

// Fault is a layer, an error type and an error code. The zero value is no fault.
type Fault uint16

// The bits of a Fault: one that marks a fault, 3 of layer, 4 of type, 8 of code.
const (
	someFault  Fault = 1 << 15
	layerRDMAP       = someFault | 0<<12
	layerDDP         = someFault | 1<<12
	layerLLP         = someFault | 2<<12
	protection       = layerRDMAP | 1<<8
	operation        = layerRDMAP | 2<<8
	tagged           = layerDDP | 1<<8
	untagged         = layerDDP | 2<<8
)

const (
	NoFault Fault = 0

	FaultLocal Fault = layerRDMAP // the reporting side cannot continue

	// RFC 5040 section 4.8, remote protection: the peer may not use the source of a read,
	// the target of an atomic or the tag to invalidate.
	FaultSourceTag    Fault = protection
	FaultSourceBounds Fault = protection | 1
	FaultSourceAccess Fault = protection | 2
	FaultSourceStream Fault = protection | 3
	FaultSourceWrap   Fault = protection | 4
	FaultInvalidate   Fault = protection | 9

	// RFC 5040 section 4.8, remote operation.
	FaultVersion     Fault = operation | 5
	FaultOpcode      Fault = operation | 6
	FaultAlignment   Fault = operation | 7 // RFC 7306 section 8.2: an unaligned atomic
	FaultGlobal      Fault = operation | 8
	FaultUnspecified Fault = operation | 0xff

	FaultDDP Fault = layerDDP // local catastrophic error of DDP

	// RFC 5041 section 7.2, tagged buffer.
	FaultTag              Fault = tagged
	FaultTagBounds        Fault = tagged | 1
	FaultTagStream        Fault = tagged | 2
	FaultTagWrap          Fault = tagged | 3
	FaultTaggedDDPVersion Fault = tagged | 4

	// RFC 5041 section 7.2, untagged buffer.
	FaultQueue              Fault = untagged | 1
	FaultNoBuffer           Fault = untagged | 2
	FaultMSN                Fault = untagged | 3
	FaultMO                 Fault = untagged | 4
	FaultTooLong            Fault = untagged | 5
	FaultUntaggedDDPVersion Fault = untagged | 6

	// RFC 5044 section 8 and RFC 6581 section 8: MPA.
	FaultMPALost   Fault = layerLLP | 1
	FaultMPACRC    Fault = layerLLP | 2
	FaultMPAMarker Fault = layerLLP | 3
	FaultMPAFrame  Fault = layerLLP | 4
	FaultMPALocal  Fault = layerLLP | 5
	FaultMPADepth  Fault = layerLLP | 6
	FaultMPAReady  Fault = layerLLP | 7
)

// faultTexts describe what was refused; the device adds the peer and a remedy.
var faultTexts = map[Fault]string{
	FaultLocal:              "internal error of the reporting side",
	FaultSourceTag:          "the tag names no region",
	FaultSourceBounds:       "the access exceeds the region",
	FaultSourceAccess:       "the region was not registered with this access right",
	FaultSourceStream:       "the region belongs to another protection domain or connection",
	FaultSourceWrap:         "address and length exceed 64 bits",
	FaultInvalidate:         "the tag may not be invalidated by this peer",
	FaultVersion:            "RDMAP version is not 1",
	FaultOpcode:             "operation is unknown or not expected here",
	FaultAlignment:          "the target of an atomic is not aligned to 8 bytes",
	FaultGlobal:             "the peer's device failed",
	FaultUnspecified:        "the message does not have the form of its operation",
	FaultDDP:                "the segment is shorter than its header",
	FaultTag:                "the tag names no region that this may be placed in",
	FaultTagBounds:          "the data exceeds the region",
	FaultTagStream:          "the region belongs to another protection domain or connection",
	FaultTagWrap:            "address and length exceed 64 bits",
	FaultTaggedDDPVersion:   "DDP version of a tagged segment is not 1",
	FaultQueue:              "there is no such queue for this operation",
	FaultNoBuffer:           "no receive is posted, or more requests are outstanding than were negotiated",
	FaultMSN:                "message number is outside the expected range",
	FaultMO:                 "offset of the segment is not where the message continues",
	FaultTooLong:            "the message is longer than its buffer",
	FaultUntaggedDDPVersion: "DDP version of an untagged segment is not 1",
	FaultMPALost:            "the TCP connection ended within a stream",
	FaultMPACRC:             "a frame's CRC is wrong",
	FaultMPAMarker:          "a marker and a frame's length disagree",
	FaultMPAFrame:           "the set-up frame is malformed",
	FaultMPALocal:           "set-up failed at the reporting side",
	FaultMPADepth:           "the peer's read depth is insufficient",
	FaultMPAReady:           "no common kind of ready-to-receive message",
}

// FaultOf returns the fault of the three numbers of a Terminate.
func FaultOf(layer, etype, code uint8) Fault {
	return someFault | Fault(layer&7)<<12 | Fault(etype&15)<<8 | Fault(code)
}

// Layer returns 0 for RDMAP, 1 for DDP and 2 for the layer below.
func (f Fault) Layer() uint8 { return uint8(f >> 12 & 7) }

// Type returns the error type within the layer.
func (f Fault) Type() uint8 { return uint8(f >> 8 & 15) }

// Code returns the error code within the type.
func (f Fault) Code() uint8 { return uint8(f) }

// known reports whether the RFCs define this fault.
func (f Fault) known() bool {
	_, ok := faultTexts[f]
	return ok
}

// Access reports whether a key, a bound or a right caused the refusal, which the origin of
// the operation reports as rdma.StatusRemoteAccess.
func (f Fault) Access() bool {
	return f&^0xff == protection || f&^0xff == tagged && f != FaultTaggedDDPVersion
}

func (f Fault) String() string {
	if f == NoFault {
		return "no fault"
	}
	text := faultTexts[f]
	if text == "" {
		text = "a fault that the RFCs do not list"
	}
	return fmt.Sprintf("%s (layer %d, type %d, code %d)", text, f.Layer(), f.Type(), f.Code())
}

// Err returns nil if there is no fault.
func (f Fault) Err() error {
	if f == NoFault {
		return nil
	}
	return faultError(f)
}

type faultError Fault

func (e faultError) Error() string { return "iwarp: " + Fault(e).String() }
