package core

// Info objects (MPI-4.1 chapter 10).

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
)

const (
	maxInfoKey   = 255 // MPI_MAX_INFO_KEY
	maxInfoValue = 1024
)

// info is an info object: keys in the order in which they were set.
type info struct {
	mu   sync.Mutex
	list []infoPair
}

type infoPair struct{ key, value string }

func infos() map[string]handler {
	return map[string]handler{
		"Info_create":       (*Process).infoCreate,
		"Info_create_env":   (*Process).infoCreateEnv,
		"Info_free":         (*Process).infoFree,
		"Info_dup":          copyInfo((*args).info, func(f *info) *info { return f }),
		"Info_set":          (*Process).infoSet,
		"Info_delete":       (*Process).infoDelete,
		"Info_get":          (*Process).infoGet,
		"Info_get_string":   (*Process).infoGetString,
		"Info_get_valuelen": (*Process).infoGetLength,
		"Info_get_nkeys":    query((*args).info, func(f *info) int { return len(f.pairs()) }),
		"Info_get_nthkey":   (*Process).infoKey,
	}
}

func (f *info) index(key string) int {
	return slices.IndexFunc(f.list, func(e infoPair) bool { return e.key == key })
}

func (f *info) get(key string) (string, bool) {
	if f == nil {
		return "", false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if i := f.index(key); i >= 0 {
		return f.list[i].value, true
	}
	return "", false
}

func (f *info) set(key, value string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if i := f.index(key); i >= 0 {
		f.list[i].value = value
		return
	}
	f.list = append(f.list, infoPair{key, value})
}

// pairs returns a copy of the content. A nil info has none.
func (f *info) pairs() []infoPair {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.list)
}

func (f *info) clone() *info { return &info{list: f.pairs()} }

// info returns the info object of a handle.
func (a *args) info(i int) *info {
	f, err := a.p.info(a.handle(i))
	if err != nil {
		a.fail(err)
	}
	return f
}

func (p *Process) info(h handle) (*info, error) {
	if h == infoEnv {
		return p.env(), nil
	}
	f := p.infos.get(h)
	if f == nil {
		return nil, errorf(errInfo, "%#x is not an info object", uint32(h))
	}
	return f, nil
}

// hints is info, or nil for MPI_INFO_NULL.
func (p *Process) hints(h handle) (*info, error) {
	if h == infoNull {
		return nil, nil
	}
	return p.info(h)
}

// hints is info, or nil for MPI_INFO_NULL.
func (a *args) hints(i int) *info {
	if a.handle(i) == infoNull {
		return nil
	}
	return a.info(i)
}

// infoKeyAt returns a key.
func (a *args) infoKeyAt(i int) string {
	if a.addr(i) == 0 {
		a.fail(errorf(errInfoKey, "the key is NULL"))
		return ""
	}
	key := a.text(i)
	switch {
	case key == "":
		a.fail(errorf(errInfoKey, "the key is empty"))
	case len(key) > maxInfoKey:
		a.fail(errorf(errInfoKey, "the key has %d characters, more than %d", len(key), maxInfoKey))
	}
	return key
}

func (p *Process) infoCreate(a *args) error {
	a.setHandle(0, p.infos.add(&info{}))
	return nil
}

// infoCreateEnv is MPI_Info_create_env: MPI_INFO_ENV for programs that have not called
// MPI_Init (MPI-4.1 section 11.2.1).
func (p *Process) infoCreateEnv(a *args) error {
	a.setHandle(2, p.infos.add(p.env().clone()))
	return nil
}

// env returns the content of MPI_INFO_ENV.
func (p *Process) env() *info {
	p.envMade.Do(func() {
		f := &info{}
		if raw, err := os.ReadFile("/proc/self/cmdline"); err == nil {
			argv := strings.Split(strings.TrimSuffix(string(raw), "\x00"), "\x00")
			f.set("command", argv[0])
			f.set("argv", strings.Join(argv[1:], " "))
		}
		if p.world != nil {
			f.set("maxprocs", strconv.Itoa(p.world.Comm().Size()))
		}
		if host, err := os.Hostname(); err == nil {
			f.set("host", host)
		}
		if dir, err := os.Getwd(); err == nil {
			f.set("wdir", dir)
		}
		f.set("thread_level", threadLevels[p.level])
		p.envInfo = f
	})
	return p.envInfo
}

// threadLevels are the names of the thread levels, by their number.
var threadLevels = [...]string{"MPI_THREAD_SINGLE", "MPI_THREAD_FUNNELED", "MPI_THREAD_SERIALIZED", "MPI_THREAD_MULTIPLE"}

func (p *Process) infoFree(a *args) error {
	at := a.handleAt(0)
	if p.infos.remove(at.get()) == nil {
		return errorf(errInfo, "%#x is not an info object that can be freed", uint32(at.get()))
	}
	at.set(infoNull)
	return nil
}

func (p *Process) infoSet(a *args) error {
	f, key := a.info(0), a.infoKeyAt(1)
	if a.addr(2) == 0 {
		a.fail(errorf(errInfoValue, "the value is NULL"))
	}
	if a.err != nil {
		return nil
	}
	value := a.text(2)
	if len(value) > maxInfoValue {
		return errorf(errInfoValue, "the value has %d characters, more than %d", len(value), maxInfoValue)
	}
	f.set(key, value)
	return nil
}

func (p *Process) infoDelete(a *args) error {
	f, key := a.info(0), a.infoKeyAt(1)
	if a.err != nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	i := f.index(key)
	if i < 0 {
		return errorf(errInfoNoKey, "there is no key %q", key)
	}
	f.list = slices.Delete(f.list, i, i+1)
	return nil
}

// infoGet is MPI_Info_get: the length is that of the value, without its NUL.
func (p *Process) infoGet(a *args) error {
	f, key := a.info(0), a.infoKeyAt(1)
	a.results(3, 4)
	if a.int(2) < 0 {
		a.fail(errorf(errArg, "the length is %d", a.int(2)))
	}
	if a.err != nil {
		return nil
	}
	value, ok := f.get(key)
	a.setFlag(4, ok)
	if ok {
		a.setText(3, value, a.int(2)+1)
	}
	return nil
}

// infoGetString is MPI_Info_get_string: the length counts the NUL, and is set to what the
// value needs.
func (p *Process) infoGetString(a *args) error {
	f, key := a.info(0), a.infoKeyAt(1)
	if a.err != nil {
		return nil
	}
	value, ok := f.get(key)
	a.setFlag(4, ok)
	if !ok {
		return nil
	}
	if room := int(*at[int32](a.addr(2))); room > 0 && a.addr(3) != 0 {
		a.setText(3, value, room)
	}
	a.setInt(2, len(value)+1)
	return nil
}

func (p *Process) infoGetLength(a *args) error {
	f, key := a.info(0), a.infoKeyAt(1)
	if a.err != nil {
		return nil
	}
	value, ok := f.get(key)
	a.setFlag(3, ok)
	if ok {
		a.setInt(2, len(value))
	}
	return nil
}

func (p *Process) infoKey(a *args) error {
	f := a.info(0)
	list, n := f.pairs(), a.int(1)
	if n < 0 || n >= len(list) {
		return errorf(errArg, "there is no key %d: the info object has %d", n, len(list))
	}
	a.setText(2, list[n].key, maxInfoKey+1)
	return nil
}
