package doctor

// Collecting the facts of this host, without judgement. Data that cannot be read is left
// empty, or recorded as an error text in the facts.

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/muster-mpi/muster/internal/launch"
	"github.com/muster-mpi/muster/internal/netprobe"
	"github.com/muster-mpi/muster/rdma/ofi"
)

// Config describes the program that the doctor is part of.
type Config struct {
	// Muster is the version to report.
	Muster string
	// Self is the command line that runs Role, with the role appended, for trials that
	// need other processes. Empty: these trials are skipped.
	Self []string
	// Provider and Interface are the settings of a job; see ofi.Config. Default: chosen
	// automatically.
	Provider, Interface string
}

const (
	resolveTime = 10 * time.Second
	probeTime   = 10 * time.Second
)

// Gather collects the facts of this host. It takes a few milliseconds, or as long as the
// resolver needs for the host's own name.
func Gather(ctx context.Context, cfg Config) *Facts {
	f := &Facts{
		Muster: cfg.Muster, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH,
		Kubernetes: os.Getenv("KUBERNETES_SERVICE_HOST") != "",
	}
	f.Hostname, _ = os.Hostname()
	f.Build = programHash()
	f.Names = resolve(ctx, f.Hostname)
	f.Interfaces = interfaces()
	f.Ports.Error = loopbackError()
	f.Threads, f.Quota = launch.Machine()
	f.Fabric = survey(cfg)
	gatherSystem(f)
	if len(cfg.Self) > 0 {
		f.ProcessVM.Error = tryProcessVM(ctx, cfg.Self)
	}
	return f
}

// programHash returns a hash of the program file, or "" if the file cannot be read.
func programHash() string {
	path, err := os.Executable()
	if err != nil {
		return ""
	}
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	h := sha256.New()
	if _, err := io.Copy(h, file); err != nil {
		return ""
	}
	return hex.EncodeToString(h.Sum(nil))[:12]
}

func resolve(ctx context.Context, name string) Names {
	ctx, cancel := context.WithTimeout(ctx, resolveTime)
	defer cancel()
	start := time.Now()
	addrs, err := net.DefaultResolver.LookupHost(ctx, name)
	n := Names{Addresses: addrs, Took: time.Since(start)}
	if err != nil {
		n.Error = err.Error()
	}
	return n
}

func interfaces() (up []Interface) {
	all, _ := netprobe.Interfaces() // what cannot be listed cannot be judged
	for _, i := range all {
		if !i.Up {
			continue
		}
		f := Interface{Name: i.Name, MTU: i.MTU, Loopback: i.Loopback, Carrier: i.Running}
		if i.Physical {
			f.Speed = i.Speed // a veth always reports 10 Gbit/s
		}
		for _, p := range i.Prefixes {
			f.Networks = append(f.Networks, p.String())
		}
		up = append(up, f)
	}
	return up
}

// loopbackError listens on a port that the kernel chooses and connects to it.
func loopbackError() string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err.Error()
	}
	defer l.Close()
	c, err := net.DialTimeout("tcp", l.Addr().String(), time.Second)
	if err != nil {
		return err.Error()
	}
	c.Close()
	return ""
}

func survey(cfg Config) Fabric {
	f := Fabric{Built: ofi.Built}
	offers, version, err := ofi.Survey(ofi.Config{Provider: cfg.Provider, Interface: cfg.Interface})
	f.Version = version
	if err != nil {
		f.Error = err.Error()
	}
	for _, o := range offers {
		name := o.Provider + " on " + o.Domain
		if o.Address != "" {
			name += " (" + o.Address + ")"
		}
		if o.Taken {
			f.Taken, f.Reason = name, o.Reason
		}
		if line := name + ", " + o.Endpoint; !slices.Contains(f.Offers, line) {
			f.Offers = append(f.Offers, line)
		}
	}
	return f
}
