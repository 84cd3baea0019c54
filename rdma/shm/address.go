package shm

import (
	"encoding/base64"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"

	"github.com/muster-mpi/muster/rdma"
)

// address is the published address of a rank: its segment and how to verify it.
type address struct {
	heap  bool
	index int
	nonce uint64
	pid   int
	fd    int    // of the segment in the owner's process
	path  string // of the segment, if it has one
}

// String has the form shm1:p:INDEX:NONCE:PID:FD:PATH:SUM, the path in base64; in heap mode
// it is shm1:h:INDEX:NONCE:SUM. The number is the version of the layout. The sum covers
// everything before it: an address that was truncated or corrupted by a launcher must not
// select the wrong file.
func (a address) String() string {
	s := fmt.Sprintf("shm%d:h:%d:%x", layoutVersion, a.index, a.nonce)
	if !a.heap {
		s = fmt.Sprintf("shm%d:p:%d:%x:%d:%d:%s", layoutVersion, a.index, a.nonce, a.pid, a.fd,
			base64.RawURLEncoding.EncodeToString([]byte(a.path)))
	}
	return fmt.Sprintf("%s:%08x", s, crc32.ChecksumIEEE([]byte(s)))
}

func parseAddress(addr rdma.Addr) (address, error) {
	text, sum := string(addr), ""
	if i := strings.LastIndexByte(text, ':'); i >= 0 {
		text, sum = text[:i], text[i+1:]
	}
	f := strings.Split(text, ":")
	bad := func(why string) (address, error) {
		return address{}, fmt.Errorf("shm: %q is not the address of a shared-memory rank: %s", addr, why)
	}
	if len(f) < 4 || !strings.HasPrefix(f[0], "shm") {
		return bad("expected shmVERSION:KIND:INDEX:NONCE…")
	}
	if f[0] != "shm"+strconv.Itoa(layoutVersion) {
		return bad(fmt.Sprintf("its layout is %s, ours is shm%d; run all ranks from the same build", f[0], layoutVersion))
	}
	if got, err := strconv.ParseUint(sum, 16, 32); err != nil || len(sum) != 8 || uint32(got) != crc32.ChecksumIEEE([]byte(text)) {
		return bad("its check sum is wrong")
	}
	a := address{heap: f[1] == "h"}
	if want := 7; !a.heap && (f[1] != "p" || len(f) != want) || a.heap && len(f) != 4 {
		return bad("wrong kind or number of fields")
	}
	var err error
	if a.index, err = strconv.Atoi(f[2]); err != nil || a.index < 0 || a.index > maxIndex {
		return bad("bad index")
	}
	if a.nonce, err = strconv.ParseUint(f[3], 16, 64); err != nil {
		return bad("bad nonce")
	}
	if a.heap {
		return a, nil
	}
	if a.pid, err = strconv.Atoi(f[4]); err != nil || a.pid <= 0 {
		return bad("bad process number")
	}
	if a.fd, err = strconv.Atoi(f[5]); err != nil || a.fd < 0 {
		return bad("bad file number")
	}
	path, err := base64.RawURLEncoding.DecodeString(f[6])
	if err != nil {
		return bad("bad path")
	}
	a.path = string(path)
	return a, nil
}
