package sparse

// pageSize is the number of entries of a page. With 128, a table of pointers for 50,000
// ranks takes 3 KB and 1 KB for each page in use.
const pageSize = 1 << pageBits

const pageBits = 7

type page[T any] [pageSize]*T

// Table holds pointers by index. The zero Table is empty. Only one goroutine may use it at a
// time.
type Table[T any] struct {
	pages []*page[T]
	used  int
}

// Get returns the entry of an index, nil if none was set.
func (t *Table[T]) Get(i int) *T {
	if n := uint(i) >> pageBits; n < uint(len(t.pages)) {
		if p := t.pages[n]; p != nil {
			return p[uint(i)%pageSize]
		}
	}
	return nil
}

// Set sets the entry of an index, which must not be negative.
func (t *Table[T]) Set(i int, v *T) {
	n := i >> pageBits
	if n >= len(t.pages) {
		t.pages = append(t.pages, make([]*page[T], n+1-len(t.pages))...)
	}
	if t.pages[n] == nil {
		t.pages[n] = new(page[T])
		t.used++
	}
	t.pages[n][i%pageSize] = v
}

// All yields the entries that are not nil, in the order of their indices.
func (t *Table[T]) All(yield func(i int, v *T) bool) {
	for n, p := range t.pages {
		if p == nil {
			continue
		}
		for i, v := range p {
			if v != nil && !yield(n<<pageBits+i, v) {
				return
			}
		}
	}
}

// Words returns the number of pointers that the table takes memory for.
func (t *Table[T]) Words() int { return cap(t.pages) + t.used*pageSize }
