package doctor

import "time"

// Facts are the data of one host. They are sent as JSON, so that doctors of different
// versions can at least detect the difference.
type Facts struct {
	// Identity identifies the boot and the network namespace, so two names of one host
	// have the same value.
	Identity string `json:"identity"`
	Hostname string `json:"hostname"`
	// Kubernetes is set in a pod.
	Kubernetes bool `json:"kubernetes,omitempty"`

	Muster string `json:"muster"` // the version
	// Build is a hash of the program file, which distinguishes builds of one version.
	Build  string `json:"build,omitempty"`
	Go     string `json:"go"`
	OS     string `json:"os"`
	Arch   string `json:"arch"`
	Kernel string `json:"kernel,omitempty"` // as uname -r

	Names      Names       `json:"names"`
	Interfaces []Interface `json:"interfaces"`
	Routes     []Route     `json:"routes,omitempty"`
	Ports      Ports       `json:"ports"`

	Shared    Shared    `json:"shared_memory"`
	ProcessVM ProcessVM `json:"process_vm"`
	Limits    Limits    `json:"limits"`

	Threads   int     `json:"threads"`              // hardware threads that this process may use
	Quota     float64 `json:"quota,omitempty"`      // CPU time per second; 0: no limit
	Clock     string  `json:"clock,omitempty"`      // the kernel's clock source
	HugePages string  `json:"huge_pages,omitempty"` // always, madvise or never

	Fabric Fabric `json:"libfabric"`
}

// Names is the resolver's answer for the host's own name.
type Names struct {
	Addresses []string      `json:"addresses,omitempty"`
	Error     string        `json:"error,omitempty"`
	Took      time.Duration `json:"took_ns"`
}

// Interface is a network interface that is up.
type Interface struct {
	Name     string   `json:"name"`
	Networks []string `json:"networks,omitempty"` // addresses with their prefix: 10.0.0.1/24
	MTU      int      `json:"mtu"`
	Speed    int      `json:"speed,omitempty"` // Mbit/s; 0: unknown, as of virtual ones
	Loopback bool     `json:"loopback,omitempty"`
	Carrier  bool     `json:"carrier"` // the cable is plugged in
}

// Route is an entry of the IPv4 routing table.
type Route struct {
	To        string `json:"to"` // 10.0.0.0/24, default
	Via       string `json:"via,omitempty"`
	Interface string `json:"interface"`
}

// Ports describes the local ports.
type Ports struct {
	Low   int    `json:"low,omitempty"` // range of ephemeral ports
	High  int    `json:"high,omitempty"`
	Error string `json:"error,omitempty"` // of listening and connecting on loopback
}

// Shared describes the memory that ranks of a host can share.
type Shared struct {
	MemfdError string `json:"memfd_error,omitempty"` // of creating, mapping and writing a memfd
	Dir        string `json:"dir,omitempty"`
	DirSize    int64  `json:"dir_size"`
	DirFree    int64  `json:"dir_free"`
	DirError   string `json:"dir_error,omitempty"`
	Available  int64  `json:"available"`              // available memory of the machine
	Limit      int64  `json:"cgroup_limit,omitempty"` // memory limit of the cgroup; 0: none
}

// ProcessVM reports whether one process can copy from another's memory. It was tried
// between two children of one parent, as ranks are.
type ProcessVM struct {
	Error   string `json:"error,omitempty"`
	Yama    int    `json:"yama,omitempty"`    // kernel.yama.ptrace_scope; 0: all allowed, or not supported
	Seccomp bool   `json:"seccomp,omitempty"` // system calls are filtered
}

// Limits are the resource limits of this process, which ranks inherit. -1: none.
type Limits struct {
	Files     int64 `json:"files"`
	FilesMax  int64 `json:"files_max"` // the hard limit
	Processes int64 `json:"processes"`
	Locked    int64 `json:"locked"` // bytes of memory
	// Adapters are the kernel's RDMA adapters, which need locked memory.
	Adapters []string `json:"rdma_adapters,omitempty"`
}

// Fabric describes libfabric.
type Fabric struct {
	Built   bool     `json:"built"` // this muster was built with it
	Version string   `json:"version,omitempty"`
	Taken   string   `json:"taken,omitempty"`  // the offer that a job would use between hosts
	Reason  string   `json:"reason,omitempty"` // why
	Offers  []string `json:"offers,omitempty"`
	Error   string   `json:"error,omitempty"`
}

// Survey holds the collected data of all hosts.
type Survey struct {
	Hosts  []Visit `json:"hosts"` // the asking host first
	Trials []Trial `json:"trials,omitempty"`
}

// Visit is the result of asking a host.
type Visit struct {
	Name  string `json:"name"`
	Here  bool   `json:"here,omitempty"`  // it is the asking host
	Facts *Facts `json:"facts,omitempty"` // nil if it could not be asked
	Error string `json:"error,omitempty"`
	// Took is how long it took until the host answered.
	Took time.Duration `json:"took_ns,omitempty"`
	// Offset is how far its clock is ahead of the asker's, give or take Unsure.
	Offset time.Duration `json:"offset_ns,omitempty"`
	Unsure time.Duration `json:"unsure_ns,omitempty"`
}

// Trial is the result of an attempt of one host to reach an address of another.
type Trial struct {
	From      string `json:"from"`
	To        string `json:"to"`
	Address   string `json:"address"`
	Interface string `json:"interface"` // of the host that has the address
	// Own reports that the trying host has the same address, as with the bridges of
	// containers, so the trial would be meaningless.
	Own      bool   `json:"own,omitempty"`
	TCP      string `json:"tcp,omitempty"`       // the error, "" if the connection succeeded
	Datagram string `json:"datagram,omitempty"`  // the same for a small UDP packet
	FullSize int    `json:"full_size,omitempty"` // the MTU of the sending interface; 0: not tried
	Full     string `json:"full,omitempty"`      // the error of an unfragmented packet of that size
}
