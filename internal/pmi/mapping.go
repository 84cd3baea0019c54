package pmi

// PMI_process_mapping reports which ranks share a node, in the form
//
//	(vector,(node,nodes,ranks),(node,nodes,ranks),...)
//
// Each block assigns `ranks` ranks to each of `nodes` nodes, starting with `node`. The
// vector is cyclic, so (vector,(0,1,1)) assigns any number of ranks to node 0 and
// (vector,(0,2,1)) assigns them alternately to two nodes.

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

const mappingKey = "PMI_process_mapping"

type mappingBlock struct{ node, nodes, ranks int }

// mapping computes the node of a rank. Its size depends on the text, not on the size of
// the job. The zero mapping assigns all ranks to node 0.
type mapping struct {
	blocks []mappingBlock
	ends   []int // of each block: the ranks of a cycle up to its last
	cycle  int   // ranks assigned by one cycle of the vector
}

// eachAlone returns the mapping for an unknown layout: no two ranks share memory.
func eachAlone(size int) mapping {
	return mapping{[]mappingBlock{{0, size, 1}}, []int{size}, size}
}

func parseMapping(s string) (mapping, error) {
	body, ok := strings.CutPrefix(strings.ReplaceAll(s, " ", ""), "(vector")
	body, end := strings.CutSuffix(body, ")")
	if !ok || !end {
		return mapping{}, fmt.Errorf("pmi: %s is %.60q, which is not of the form (vector,(node,nodes,ranks))", mappingKey, s)
	}
	var m mapping
	for body != "" {
		var block mappingBlock
		var err error
		if block, body, err = cutBlock(body); err != nil {
			return mapping{}, fmt.Errorf("pmi: %s is %.60q: %w", mappingKey, s, err)
		}
		m.blocks = append(m.blocks, block)
		m.cycle += block.nodes * block.ranks
		m.ends = append(m.ends, m.cycle)
		if m.cycle > maxMapped {
			return mapping{}, fmt.Errorf("pmi: %s is %.60q: it assigns more ranks than a job can have", mappingKey, s)
		}
	}
	if m.cycle == 0 {
		return mapping{}, fmt.Errorf("pmi: %s is %.60q: it assigns no rank", mappingKey, s)
	}
	return m, nil
}

const maxMapped = 1 << 30

func cutBlock(s string) (mappingBlock, string, error) {
	body, ok := strings.CutPrefix(s, ",(")
	text, rest, closed := strings.Cut(body, ")")
	parts := strings.Split(text, ",")
	if !ok || !closed || len(parts) != 3 {
		return mappingBlock{}, "", errors.New("a block must have the form (node,nodes,ranks)")
	}
	var v [3]int
	for i, p := range parts {
		n, err := strconv.Atoi(p)
		if err != nil || n < 0 || n > 1<<24 {
			return mappingBlock{}, "", fmt.Errorf("invalid count %q", p)
		}
		v[i] = n
	}
	return mappingBlock{v[0], v[1], v[2]}, rest, nil
}

// node returns the node of a rank.
func (m *mapping) node(rank int) int {
	if m.cycle == 0 {
		return 0
	}
	rank %= m.cycle
	i, _ := slices.BinarySearch(m.ends, rank+1) // the first block that ends after it
	return m.blocks[i].node + (rank-m.start(i))/m.blocks[i].ranks
}

// start returns the first rank of a block in a cycle.
func (m *mapping) start(i int) int { return m.ends[i] - m.blocks[i].nodes*m.blocks[i].ranks }

// FormatMapping returns the value of PMI_process_mapping for any layout: nodes[rank] is the node of a rank.
// Runs of equal length on consecutive nodes become one block, and a periodic layout is
// written once.
func FormatMapping(nodes []int) string {
	var runs []mappingBlock
	for _, node := range nodes {
		if last := len(runs) - 1; last >= 0 && runs[last].node == node {
			runs[last].ranks++
			continue
		}
		runs = append(runs, mappingBlock{node, 1, 1})
	}
	var blocks []mappingBlock
	for _, run := range shortestCycle(runs) {
		if last := len(blocks) - 1; last >= 0 && blocks[last].ranks == run.ranks && blocks[last].node+blocks[last].nodes == run.node {
			blocks[last].nodes++
			continue
		}
		blocks = append(blocks, run)
	}
	var b strings.Builder
	b.WriteString("(vector")
	for _, k := range blocks {
		fmt.Fprintf(&b, ",(%d,%d,%d)", k.node, k.nodes, k.ranks)
	}
	b.WriteByte(')')
	if b.Len() > maxMappingText {
		// One rank per node is always correct: only the use of shared memory is lost.
		return fmt.Sprintf("(vector,(0,%d,1))", len(nodes))
	}
	return b.String()
}

// maxMappingText leaves space for the other fields of the line.
const maxMappingText = maxLine - 1024

// shortestCycle returns the shortest prefix of runs whose repetition yields all of them.
func shortestCycle(runs []mappingBlock) []mappingBlock {
	for n := 1; n <= len(runs)/2; n++ {
		if len(runs)%n != 0 {
			continue
		}
		i := n
		for i < len(runs) && runs[i] == runs[i-n] {
			i++
		}
		if i == len(runs) {
			return runs[:n]
		}
	}
	return runs
}

// local returns the number of ranks on the node of a rank: those before it, and all. Like
// the following functions it takes time for each block, not for each rank.
func (m *mapping) local(rank, size int) (before, all int) {
	node := m.node(rank)
	return m.count(node, rank), m.count(node, size)
}

// count returns the number of ranks on a node among the first ranks of the job.
func (m *mapping) count(node, ranks int) (n int) {
	if m.cycle == 0 {
		return ranks
	}
	cycles, rest := ranks/m.cycle, ranks%m.cycle
	for i, b := range m.blocks {
		if node < b.node || node >= b.node+b.nodes {
			continue
		}
		first := m.start(i) + (node-b.node)*b.ranks
		n += cycles*b.ranks + min(max(rest-first, 0), b.ranks)
	}
	return n
}

// at returns the rank of a node that has the given number of ranks before it there, -1 if
// the node has no ranks.
func (m *mapping) at(node, index int) int {
	if m.cycle == 0 {
		return index
	}
	each := m.count(node, m.cycle)
	if each == 0 {
		return -1
	}
	cycles, rest := index/each, index%each
	for i, b := range m.blocks {
		switch {
		case node < b.node || node >= b.node+b.nodes:
		case rest < b.ranks:
			return cycles*m.cycle + m.start(i) + (node-b.node)*b.ranks + rest
		default:
			rest -= b.ranks
		}
	}
	return -1
}
