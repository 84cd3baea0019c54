package core

import "github.com/muster-mpi/muster/internal/dtype"

// predefinedTypes are the predefined datatypes of the MPICH ABI but for the pairs, whose
// handles look like those of datatypes that a program has made.
var predefinedTypes = []predefinedType{
	{0x4c000101, "MPI_CHAR", 1, 1, dtype.Int8, true},
	{0x4c000118, "MPI_SIGNED_CHAR", 1, 1, dtype.Int8, true},
	{0x4c000102, "MPI_UNSIGNED_CHAR", 1, 1, dtype.Uint8, true},
	{0x4c00010d, "MPI_BYTE", 1, 1, dtype.Uint8, true},
	{0x4c00040e, "MPI_WCHAR", 4, 4, dtype.Int32, true},
	{0x4c000203, "MPI_SHORT", 2, 2, dtype.Int16, true},
	{0x4c000204, "MPI_UNSIGNED_SHORT", 2, 2, dtype.Uint16, true},
	{0x4c000405, "MPI_INT", 4, 4, dtype.Int32, true},
	{0x4c000406, "MPI_UNSIGNED", 4, 4, dtype.Uint32, true},
	{0x4c000807, "MPI_LONG", 8, 8, dtype.Int64, true},
	{0x4c000808, "MPI_UNSIGNED_LONG", 8, 8, dtype.Uint64, true},
	{0x4c00040a, "MPI_FLOAT", 4, 4, dtype.Float32, true},
	{0x4c00080b, "MPI_DOUBLE", 8, 8, dtype.Float64, true},
	{0x4c00100c, "MPI_LONG_DOUBLE", 16, 16, 0, false},
	{0x4c000809, "MPI_LONG_LONG_INT", 8, 8, dtype.Int64, true},
	{0x4c000819, "MPI_UNSIGNED_LONG_LONG", 8, 8, dtype.Uint64, true},
	{0x4c00010f, "MPI_PACKED", 1, 1, 0, false},
	{0x4c000816, "MPI_2INT", 8, 4, dtype.PairInt32Int32, true},
	{0x4c00081e, "MPI_COMPLEX", 8, 4, dtype.Complex64, true},
	{0x4c001022, "MPI_DOUBLE_COMPLEX", 16, 8, dtype.Complex128, true},
	{0x4c00041d, "MPI_LOGICAL", 4, 4, dtype.Uint32, true},
	{0x4c00041c, "MPI_REAL", 4, 4, dtype.Float32, true},
	{0x4c00081f, "MPI_DOUBLE_PRECISION", 8, 8, dtype.Float64, true},
	{0x4c00041b, "MPI_INTEGER", 4, 4, dtype.Int32, true},
	{0x4c000820, "MPI_2INTEGER", 8, 4, dtype.PairInt32Int32, true},
	{0x4c000821, "MPI_2REAL", 8, 4, 0, false},
	{0x4c001023, "MPI_2DOUBLE_PRECISION", 16, 8, 0, false},
	{0x4c00011a, "MPI_CHARACTER", 1, 1, dtype.Uint8, true},
	{0x4c000427, "MPI_REAL4", 4, 4, dtype.Float32, true},
	{0x4c000829, "MPI_REAL8", 8, 8, dtype.Float64, true},
	{0x4c00102b, "MPI_REAL16", 16, 16, 0, false},
	{0x4c000828, "MPI_COMPLEX8", 8, 4, dtype.Complex64, true},
	{0x4c00102a, "MPI_COMPLEX16", 16, 8, dtype.Complex128, true},
	{0x4c00202c, "MPI_COMPLEX32", 32, 16, 0, false},
	{0x4c00012d, "MPI_INTEGER1", 1, 1, dtype.Int8, true},
	{0x4c00022f, "MPI_INTEGER2", 2, 2, dtype.Int16, true},
	{0x4c000430, "MPI_INTEGER4", 4, 4, dtype.Int32, true},
	{0x4c000831, "MPI_INTEGER8", 8, 8, dtype.Int64, true},
	{0x4c000137, "MPI_INT8_T", 1, 1, dtype.Int8, true},
	{0x4c000238, "MPI_INT16_T", 2, 2, dtype.Int16, true},
	{0x4c000439, "MPI_INT32_T", 4, 4, dtype.Int32, true},
	{0x4c00083a, "MPI_INT64_T", 8, 8, dtype.Int64, true},
	{0x4c00013b, "MPI_UINT8_T", 1, 1, dtype.Uint8, true},
	{0x4c00023c, "MPI_UINT16_T", 2, 2, dtype.Uint16, true},
	{0x4c00043d, "MPI_UINT32_T", 4, 4, dtype.Uint32, true},
	{0x4c00083e, "MPI_UINT64_T", 8, 8, dtype.Uint64, true},
	{0x4c00013f, "MPI_C_BOOL", 1, 1, dtype.Uint8, true},
	{0x4c000840, "MPI_C_COMPLEX", 8, 4, dtype.Complex64, true},
	{0x4c001041, "MPI_C_DOUBLE_COMPLEX", 16, 8, dtype.Complex128, true},
	{0x4c002042, "MPI_C_LONG_DOUBLE_COMPLEX", 32, 16, 0, false},
	{0x4c000843, "MPI_AINT", 8, 8, dtype.Int64, true},
	{0x4c000844, "MPI_OFFSET", 8, 8, dtype.Int64, true},
	{0x4c000845, "MPI_COUNT", 8, 8, dtype.Int64, true},
	{0x4c000133, "MPI_CXX_BOOL", 1, 1, dtype.Uint8, true},
	{0x4c000834, "MPI_CXX_FLOAT_COMPLEX", 8, 4, dtype.Complex64, true},
	{0x4c001035, "MPI_CXX_DOUBLE_COMPLEX", 16, 8, dtype.Complex128, true},
	{0x4c002036, "MPI_CXX_LONG_DOUBLE_COMPLEX", 32, 16, 0, false},
	{0x4c000246, "MPIX_C_FLOAT16", 2, 2, 0, false},
	{typeLB, "MPI_LB", 0, 1, 0, false},
	{typeUB, "MPI_UB", 0, 1, 0, false},
}

// Handles of predefined datatypes that the code refers to.
const (
	typeLB        handle = 0x4c000010
	typeUB        handle = 0x4c000011
	typeInt       handle = 0x4c000405
	typeFloat     handle = 0x4c00040a
	type2Int      handle = 0x4c000816
	typeReal16    handle = 0x4c00102b
	typeComplex32 handle = 0x4c00202c
)

// pairTypes are the predefined datatypes of a value and an index for MPI_MINLOC and
// MPI_MAXLOC (MPI-4.1 section 6.9.4). Their handles are the first that the table of made
// datatypes gives.
var pairTypes = []struct {
	name   string
	value  handle
	kind   dtype.Kind
	reduce bool
}{
	{"MPI_FLOAT_INT", typeFloat, dtype.PairFloat32Int32, true},
	{"MPI_DOUBLE_INT", 0x4c00080b, dtype.PairFloat64Int32, true},
	{"MPI_LONG_INT", 0x4c000807, dtype.PairInt64Int32, true},
	{"MPI_SHORT_INT", 0x4c000203, dtype.PairInt16Int32, true},
	{"MPI_LONG_DOUBLE_INT", 0x4c00100c, 0, false},
}

// twins are the predefined datatypes without padding that have two elements.
var twins = map[handle]handle{
	0x4c000816: typeInt,    // MPI_2INT
	0x4c000820: 0x4c00041b, // MPI_2INTEGER
	0x4c000821: 0x4c00041c, // MPI_2REAL
	0x4c001023: 0x4c00081f, // MPI_2DOUBLE_PRECISION
}

// sizedTypes are the datatypes that MPI_Type_match_size and MPI_Type_create_f90_ choose
// from, by size (MPI-4.1 sections 19.1.9 and 19.1.10).
var sizedTypes = map[typeClass]map[int]handle{
	classReal:    {4: 0x4c000427, 8: 0x4c000829, 16: typeReal16},
	classInteger: {1: 0x4c00012d, 2: 0x4c00022f, 4: 0x4c000430, 8: 0x4c000831},
	classComplex: {8: 0x4c000828, 16: 0x4c00102a, 32: typeComplex32},
}

// typeClass is MPI_TYPECLASS_.
type typeClass int

const (
	classReal typeClass = iota + 1
	classInteger
	classComplex
)
