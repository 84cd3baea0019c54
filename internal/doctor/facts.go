package doctor

import "time"

// Facts is what one host says about itself. It travels as JSON, so that the
// doctor of one version can at least tell that another host has another one.
type Facts struct {
	// Identity is the same for two names of one host: the boot and the network
	// namespace.
	Identity string `json:"identity"`
	Hostname string `json:"hostname"`
	// Kubernetes is set in a pod.
	Kubernetes bool `json:"kubernetes,omitempty"`

	Muster string `json:"muster"` // the version
	// Build tells builds of one version apart: a hash of the program file.
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

	Threads   int     `json:"threads"`              // of the CPU, that this process may use
	Quota     float64 `json:"quota,omitempty"`      // CPU time per second; 0: no limit
	Clock     string  `json:"clock,omitempty"`      // the kernel's clock source
	HugePages string  `json:"huge_pages,omitempty"` // always, madvise or never

	Fabric Fabric `json:"libfabric"`
}

// Names is what the resolver says to the host's own name.
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

// Ports is about listening and connecting on the host itself.
type Ports struct {
	Low   int    `json:"low,omitempty"` // the ports that the kernel gives out
	High  int    `json:"high,omitempty"`
	Error string `json:"error,omitempty"` // of listening and connecting to oneself
}

// Shared is the memory that ranks of a host can have in common.
type Shared struct {
	MemfdError string `json:"memfd_error,omitempty"` // of making, mapping and writing one
	Dir        string `json:"dir,omitempty"`
	DirSize    int64  `json:"dir_size"`
	DirFree    int64  `json:"dir_free"`
	DirError   string `json:"dir_error,omitempty"`
	Available  int64  `json:"available"`              // memory of the machine that is free or can be freed
	Limit      int64  `json:"cgroup_limit,omitempty"` // on memory, of the cgroup; 0: none
}

// ProcessVM is whether one process can copy from another's memory. It was tried
// between two children of one parent, as ranks are.
type ProcessVM struct {
	Error   string `json:"error,omitempty"`
	Yama    int    `json:"yama,omitempty"`    // kernel.yama.ptrace_scope; 0: all allowed, or not there
	Seccomp bool   `json:"seccomp,omitempty"` // system calls are filtered
}

// Limits are of this process, so those that ranks get from it. -1: none.
type Limits struct {
	Files     int64 `json:"files"`
	FilesMax  int64 `json:"files_max"` // up to where a user may raise it
	Processes int64 `json:"processes"`
	Locked    int64 `json:"locked"` // bytes of memory
	// Adapters are the RDMA adapters of the kernel, which need locked memory.
	Adapters []string `json:"rdma_adapters,omitempty"`
}

// Fabric is what libfabric offers.
type Fabric struct {
	Built   bool     `json:"built"` // into this muster
	Version string   `json:"version,omitempty"`
	Taken   string   `json:"taken,omitempty"`  // what would carry messages between hosts
	Reason  string   `json:"reason,omitempty"` // why
	Offers  []string `json:"offers,omitempty"`
	Error   string   `json:"error,omitempty"`
}

// Survey is all that is known before it is judged.
type Survey struct {
	Hosts  []Visit `json:"hosts"` // the one that asks first
	Trials []Trial `json:"trials,omitempty"`
}

// Visit is how asking a host went.
type Visit struct {
	Name  string `json:"name"`
	Here  bool   `json:"here,omitempty"`  // it is the host that asks
	Facts *Facts `json:"facts,omitempty"` // nil if it could not be asked
	Error string `json:"error,omitempty"`
	// Took is how long it took until the host answered.
	Took time.Duration `json:"took_ns,omitempty"`
	// Offset is how far its clock is ahead of the asker's, give or take Unsure.
	Offset time.Duration `json:"offset_ns,omitempty"`
	Unsure time.Duration `json:"unsure_ns,omitempty"`
}

// Trial is what happened when a host tried to reach an address of another.
type Trial struct {
	From      string `json:"from"`
	To        string `json:"to"`
	Address   string `json:"address"`
	Interface string `json:"interface"` // of the host that has the address
	// Own says that the address is one of the trying host too, so it says
	// nothing about the other: bridges of containers are such.
	Own      bool   `json:"own,omitempty"`
	TCP      string `json:"tcp,omitempty"`       // the error, "" if a connection came about
	Datagram string `json:"datagram,omitempty"`  // the same for a small UDP packet
	FullSize int    `json:"full_size,omitempty"` // the MTU of the interface it leaves by; 0: not tried
	Full     string `json:"full,omitempty"`      // the error of a packet of that size, not to be cut
}
