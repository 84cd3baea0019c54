package results

// Claim compares figures of generated tables with what a source reached, or with a
// target of our own.
type Claim struct {
	Source string // anchor in docs/references.md; "": a target of our own
	Where  string // section of the source
	Text   string
	Tables string // names of tables, separated by commas; * matches any text
	Count  int    // number of tables; if fewer exist, the claim is not measured
	Rows   string // regular expression for the labels of rows; "": all
	Column string // heading of the column, without its unit
	// Op and Limit are the threshold. If Op is "", each row has one in the column
	// "must be", and rows without one are left out.
	Op    string
	Limit float64
	// Best judges the best row, for claims such as "up to 14 %". The worst is shown too.
	Best bool
	// Reason says why a claim cannot be measured on one machine with this repository. Such a
	// claim has no tables.
	Reason string
	// Bound says what limits the figure below the threshold, here or by definition. A claim with a
	// bound is not missed but bounded.
	Bound string
	// Gap judges the figure minus the best figure of the columns for peers.
	Gap bool
}

// Values of Op.
const (
	AtMost  = "≤"
	AtLeast = "≥"
)

// Section is a heading of the page and its claims.
type Section struct {
	Title  string
	Note   string // what a reader must know to compare; "": nothing
	Claims []Claim
	// Document is the name of the document whose page has the claims, "" if Page has them.
	Document string
}
