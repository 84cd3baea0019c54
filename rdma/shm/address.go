package shm

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"

	"github.com/muster-mpi/muster/rdma"
)

// address is what a rank publishes: where its segment is, and how to know it.
type address struct {
	heap  bool
	index int
	nonce uint64
	pid   int
	fd    int    // of the segment in the owner's process
	path  string // of the segment, if it has one
}

// String has the form shm1:p:INDEX:NONCE:PID:FD:PATH, the path in base64; in heap
// mode it is shm1:h:INDEX:NONCE. The number is the version of the layout.
func (a address) String() string {
	if a.heap {
		return fmt.Sprintf("shm%d:h:%d:%x", layoutVersion, a.index, a.nonce)
	}
	return fmt.Sprintf("shm%d:p:%d:%x:%d:%d:%s", layoutVersion, a.index, a.nonce, a.pid, a.fd,
		base64.RawURLEncoding.EncodeToString([]byte(a.path)))
}

func parseAddress(addr rdma.Addr) (address, error) {
	f := strings.Split(string(addr), ":")
	bad := func(why string) (address, error) {
		return address{}, fmt.Errorf("shm: %q is not the address of a shared-memory rank: %s", addr, why)
	}
	if len(f) < 4 || !strings.HasPrefix(f[0], "shm") {
		return bad("expected shmVERSION:KIND:INDEX:NONCE…")
	}
	if f[0] != "shm"+strconv.Itoa(layoutVersion) {
		return bad(fmt.Sprintf("its layout is %s, ours is shm%d; run all ranks from the same build", f[0], layoutVersion))
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
