package core

// Functions that MPI-4.1 and MPI-5.0 have added to those of MPICH 4.0 (MPI-5.0 chapter 20).

import "strconv"

func standardCalls() map[string]handler {
	return map[string]handler{
		"Abi_get_version":          (*Process).abiVersion,
		"Abi_get_info":             sizes("mpi_aint_size", 8, "mpi_count_size", 8, "mpi_offset_size", 8),
		"Abi_get_fortran_info":     sizes("mpi_logical_size", 4, "mpi_integer_size", 4, "mpi_real_size", 4, "mpi_double_precision_size", 8),
		"Abi_set_fortran_info":     fixedFortran,
		"Abi_get_fortran_booleans": (*Process).fortranBooleans,
		"Abi_set_fortran_booleans": fixedFortran,
		"Get_hw_resource_info":     sizes(),
		"Type_get_value_index":     (*Process).valueIndex,
	}
}

func (p *Process) abiVersion(a *args) error {
	a.setInt(0, 1)
	a.setInt(1, 0)
	return nil
}

// sizes is the handler of a function that stores an info object with numbers.
func sizes(pairs ...any) handler {
	return func(p *Process, a *args) error {
		f := &info{}
		for i := 0; i < len(pairs); i += 2 {
			f.set(pairs[i].(string), strconv.Itoa(pairs[i+1].(int)))
		}
		a.setHandle(0, p.infos.add(f))
		return nil
	}
}

func fixedFortran(*Process, *args) error {
	return errorf(errUnsupported, "the types of Fortran are those of GNU Fortran")
}

// fortranBooleans is MPI_Abi_get_fortran_booleans: 1 and 0, in logical values of a size.
func (p *Process) fortranBooleans(a *args) error {
	n := a.int(0)
	if n != 1 && n != 2 && n != 4 && n != 8 && n != 16 {
		return errorf(errArg, "no logical type has %d bytes", n)
	}
	if a.results(1, 2); a.err != nil {
		return nil
	}
	clear(memory[byte](a.addr(1), n))
	clear(memory[byte](a.addr(2), n))
	set(a.addr(1), byte(1))
	a.setFlag(3, true)
	return nil
}

// valueIndex is MPI_Type_get_value_index: the predefined pair of two datatypes, if there is one.
func (p *Process) valueIndex(a *args) error {
	value, index := a.datatype(0), a.datatype(1)
	if a.err != nil {
		return nil
	}
	h := datatypeNull
	if index.handle == typeInt {
		if value.handle == typeInt {
			h = type2Int
		}
		for i, pair := range pairTypes {
			if pair.value == value.handle {
				h = made | kindDatatype | handle(i)
			}
		}
	}
	a.setHandle(2, h)
	return nil
}
