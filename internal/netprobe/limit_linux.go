package netprobe

import (
	"encoding/binary"
	"syscall"
)

// The rate limits of interfaces. Container networks and muster lab limit virtual
// interfaces with a token bucket filter (tbf). The driver of such an interface reports a
// speed that has no meaning. The kernel lists filters in answer to RTM_GETQDISC
// (rtnetlink(7), linux/pkt_sched.h).

const (
	qdiscHeader  = 20         // struct tcmsg
	qdiscRoot    = 0xffffffff // TC_H_ROOT: the parent of the filter of a whole interface
	attrKind     = 1          // TCA_KIND
	attrOptions  = 2          // TCA_OPTIONS
	attrTBFParms = 1          // TCA_TBF_PARMS: struct tc_tbf_qopt, which begins with a tc_ratespec
	rateOffset   = 8          // of the bytes per second in a tc_ratespec
)

// limits returns the rate limits in Mbit/s by interface index. What the kernel does not report is
// not limited.
func limits() map[int]int {
	rates := map[int]int{}
	fd, err := syscall.Socket(syscall.AF_NETLINK, syscall.SOCK_RAW|syscall.SOCK_CLOEXEC, syscall.NETLINK_ROUTE)
	if err != nil {
		return rates
	}
	defer syscall.Close(fd)
	request := make([]byte, syscall.NLMSG_HDRLEN+qdiscHeader)
	binary.NativeEndian.PutUint32(request, uint32(len(request)))
	binary.NativeEndian.PutUint16(request[4:], syscall.RTM_GETQDISC)
	binary.NativeEndian.PutUint16(request[6:], syscall.NLM_F_REQUEST|syscall.NLM_F_DUMP)
	if err := syscall.Sendto(fd, request, 0, &syscall.SockaddrNetlink{Family: syscall.AF_NETLINK}); err != nil {
		return rates
	}
	answer := make([]byte, 64<<10)
	for {
		n, _, err := syscall.Recvfrom(fd, answer, 0)
		if err != nil {
			return rates
		}
		messages, err := syscall.ParseNetlinkMessage(answer[:n])
		if err != nil {
			return rates
		}
		for _, m := range messages {
			switch m.Header.Type {
			case syscall.NLMSG_DONE, syscall.NLMSG_ERROR:
				return rates
			case syscall.RTM_NEWQDISC:
				if index, rate := limitOf(m.Data); rate > 0 {
					rates[index] = rate
				}
			}
		}
	}
}

// limitOf returns the interface and the limit of a filter, or 0 for one that limits
// nothing.
func limitOf(qdisc []byte) (index, rate int) {
	if len(qdisc) < qdiscHeader || binary.NativeEndian.Uint32(qdisc[12:]) != qdiscRoot {
		return 0, 0
	}
	kind := attribute(qdisc[qdiscHeader:], attrKind)
	parms := attribute(attribute(qdisc[qdiscHeader:], attrOptions), attrTBFParms)
	if string(kind) != "tbf\x00" || len(parms) < rateOffset+4 {
		return 0, 0
	}
	rate = int(uint64(binary.NativeEndian.Uint32(parms[rateOffset:])) * 8 / 1e6)
	return int(int32(binary.NativeEndian.Uint32(qdisc[4:]))), rate
}

// attribute returns the value of the first attribute of a type, or nil.
func attribute(list []byte, want uint16) []byte {
	for len(list) >= syscall.SizeofRtAttr {
		n, kind := int(binary.NativeEndian.Uint16(list)), binary.NativeEndian.Uint16(list[2:])
		if n < syscall.SizeofRtAttr || n > len(list) {
			break
		}
		if kind&^0x8000 == want { // without NLA_F_NESTED
			return list[syscall.SizeofRtAttr:n]
		}
		list = list[min((n+3)&^3, len(list)):]
	}
	return nil
}
