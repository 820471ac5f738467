package survival

import (
	"math"
	"slices"
	"time"
)

// stretch has the cells from <= cell < to, in which the delays of weight keys lie.
type stretch struct {
	from, to int
	weight   float64
}

// stretchOf gives the cells between ends that a delay may lie in.
func stretchOf(d Delay, ends []time.Duration) stretch {
	from, _ := slices.BinarySearch(ends, d.Low)
	to, _ := slices.BinarySearch(ends, d.High)
	return stretch{from, to, 1}
}

// masses is a distribution: share[i] lies in cell[i]; the cells ascend.
type masses struct {
	cell  []int
	share []float64
}

// within gives the mass in the cells of from <= cell < to.
func (m masses) within(from, to int) float64 {
	sum := 0.0
	for i, c := range m.cell {
		if from <= c && c < to {
			sum += m.share[i]
		}
	}
	return sum
}

// with gives the distribution with a share moved into a cell that had none.
func (m masses) with(cell int, share float64) masses {
	at, _ := slices.BinarySearch(m.cell, cell)
	wider := masses{slices.Insert(slices.Clone(m.cell), at, cell), slices.Insert(slices.Clone(m.share), at, 0)}
	for i := range wider.share {
		wider.share[i] *= 1 - share
	}
	wider.share[at] = share
	return wider
}

// fitter maximizes likelihoods. It keeps its memory from one to the next.
type fitter struct {
	first, last []int     // of each stretch, in the cells with mass: first <= i < last
	before      []int     // how many cells with mass lie before a cell
	sums        []float64 // sums[i] is the mass before the i-th cell with mass
	slope       []float64
	gradient    []float64 // by sums
	direction   []float64 // of sums
	begin, row  []int     // where rows of the factor begin: column, place
	factor      []float64
	next        []float64
}

// grow gives a slice of n zeros.
func grow[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n, n+n/2)
	}
	s = s[:n]
	clear(s)
	return s
}

// place finds the stretches among the cells with mass.
func (f *fitter) place(stretches []stretch, cells int, cell []int) {
	f.before = grow(f.before, cells+1)
	n := 0
	for k := range f.before {
		f.before[k] = n
		if n < len(cell) && cell[n] == k {
			n++
		}
	}
	f.first, f.last = grow(f.first, len(stretches)), grow(f.last, len(stretches))
	for i, s := range stretches {
		f.first[i], f.last[i] = f.before[s.from], f.before[s.to]
	}
}

func (f *fitter) sum(share []float64) {
	f.sums = grow(f.sums, len(share)+1)
	for i, m := range share {
		f.sums[i+1] = f.sums[i] + m
	}
}

// mass is how much lies in the i-th stretch.
func (f *fitter) mass(i int) float64 { return f.sums[f.last[i]] - f.sums[f.first[i]] }

// value is the logarithm of the likelihood of the stretches as placed and summed.
func (f *fitter) value(stretches []stretch) float64 {
	value := 0.0
	for i, s := range stretches {
		mass := f.mass(i)
		if mass <= 0 {
			return math.Inf(-1)
		}
		value += s.weight * math.Log(mass)
	}
	return value
}

func (f *fitter) logLikelihood(stretches []stretch, cells int, m masses) float64 {
	f.place(stretches, cells, m.cell)
	f.sum(m.share)
	return f.value(stretches)
}

// slopes gives the derivative of the logarithm of the likelihood by the mass of
// each cell. At the maximum none is above the weight of all stretches, and by as much
// as the highest is above it, the logarithm may be below the maximum.
func (f *fitter) slopes(stretches []stretch, cells int, m masses) []float64 {
	f.place(stretches, cells, m.cell)
	f.sum(m.share)
	f.slope = grow(f.slope, cells+1)
	for i, s := range stretches {
		d := s.weight / f.mass(i)
		f.slope[s.from] += d
		f.slope[s.to] -= d
	}
	for k := 1; k < cells; k++ {
		f.slope[k] += f.slope[k-1]
	}
	return f.slope[:cells]
}

// steepest gives the cell of from <= cell < to with the highest slope.
func steepest(slopes []float64, from, to int) int {
	best := from
	for k := from; k < to; k++ {
		if slopes[k] > slopes[best] {
			best = k
		}
	}
	return best
}

// fit gives the distribution for which the sum of weight × log(mass in the stretch)
// is within tolerance of the maximum. The start may leave no stretch empty.
func (f *fitter) fit(stretches []stretch, cells int, start masses, tolerance float64) masses {
	weight := 0.0
	for _, s := range stretches {
		weight += s.weight
	}
	m := masses{slices.Clone(start.cell), slices.Clone(start.share)}
	reached := math.Inf(-1)
	for range 1000 {
		m = f.climb(stretches, cells, m, tolerance)
		slopes := f.slopes(stretches, cells, m)
		value := f.value(stretches)
		if value <= reached+1e-3*tolerance {
			break // it is as near as the arithmetic allows
		}
		reached = value
		// Between each two cells with mass, add the one that promises most.
		var wider masses
		for i := 0; i <= len(m.cell); i++ {
			from, to := 0, cells
			if i > 0 {
				from = m.cell[i-1] + 1
			}
			if i < len(m.cell) {
				to = m.cell[i]
			}
			if best := steepest(slopes, from, to); from < to && slopes[best] > weight+tolerance {
				wider.cell, wider.share = append(wider.cell, best), append(wider.share, 0)
			}
			if i < len(m.cell) {
				wider.cell, wider.share = append(wider.cell, m.cell[i]), append(wider.share, m.share[i])
			}
		}
		if len(wider.cell) == len(m.cell) {
			break
		}
		m = wider
	}
	return m
}

// climb maximizes over the cells that m has, and drops those that lose their mass.
func (f *fitter) climb(stretches []stretch, cells int, m masses, tolerance float64) masses {
	value := f.logLikelihood(stretches, cells, m)
	for range 1000 {
		if len(m.cell) == 1 {
			break
		}
		gain := f.newton(stretches, len(m.cell))
		change := func(i int) float64 { return f.direction[i+1] - f.direction[i] }
		step := 1.0
		for i, share := range m.share {
			if change(i) < 0 {
				step = min(step, share/-change(i))
			}
		}
		longest := step
		for step > 0 {
			f.next = f.next[:0]
			for i, share := range m.share {
				if share += step * change(i); share < 1e-15 {
					share = 0
				}
				f.next = append(f.next, share)
			}
			f.sum(f.next)
			if v := f.value(stretches); v >= value+1e-4*step*gain {
				value = v
				copy(m.share, f.next)
				break
			}
			if step /= 2; step < 1e-12 {
				return m
			}
		}
		// A cell that is to gain mass stays.
		kept := masses{m.cell[:0], m.share[:0]}
		for i, share := range m.share {
			if share > 0 || change(i) > 0 {
				kept.cell, kept.share = append(kept.cell, m.cell[i]), append(kept.share, share)
			}
		}
		if len(kept.cell) < len(m.cell) {
			m = kept
			value = f.logLikelihood(stretches, cells, m)
		} else if longest == 1 && gain < tolerance {
			break
		}
	}
	return m
}

// newton sets direction to where the quadratic model of the value has its maximum,
// and gives the derivative of the value along it.
func (f *fitter) newton(stretches []stretch, n int) float64 {
	f.model(stretches, n)
	f.solve(n)
	gain := 0.0
	for r := 1; r < n; r++ {
		gain += f.gradient[r] * f.direction[r]
	}
	return gain
}

// model sets gradient and factor to those of the quadratic model. In the sums each
// stretch has two variables at most; so the matrix is sparse when few stretches
// overlap, and its factor is kept by rows from the first entry that is not zero.
func (f *fitter) model(stretches []stretch, n int) {
	f.begin, f.row = grow(f.begin, n), grow(f.row, n)
	for r := range f.begin {
		f.begin[r] = r
	}
	for i := range stretches {
		if u, v := f.first[i], f.last[i]; u > 0 && v < n {
			f.begin[v] = min(f.begin[v], u)
		}
	}
	size := 0
	for r := range f.row {
		f.row[r] = size - f.begin[r]
		size += r - f.begin[r] + 1
	}
	f.factor = grow(f.factor, size)
	f.gradient = grow(f.gradient, n)
	for i, s := range stretches {
		u, v := f.first[i], f.last[i]
		slope := s.weight / f.mass(i)
		curvature := slope / f.mass(i)
		if u > 0 {
			f.gradient[u] -= slope
			f.factor[f.row[u]+u] += curvature
		}
		if v < n {
			f.gradient[v] += slope
			f.factor[f.row[v]+v] += curvature
		}
		if u > 0 && v < n {
			f.factor[f.row[v]+u] -= curvature
		}
	}
}

// solve sets direction to the solution: Cholesky's factor in the place of the
// matrix, then the factor and its transpose.
func (f *fitter) solve(n int) {
	f.direction = grow(f.direction, n+1)
	for r := 1; r < n; r++ {
		begin := f.begin[r]
		row := f.factor[f.row[r]+begin : f.row[r]+r+1]
		diagonal := row[r-begin]
		pivot, y := diagonal, f.gradient[r]
		for c := begin; c < r; c++ {
			shared := max(begin, f.begin[c])
			other := f.factor[f.row[c]+shared : f.row[c]+c+1]
			x := row[c-begin]
			for i, o := range other[:c-shared] {
				x -= row[shared-begin+i] * o
			}
			x /= other[c-shared]
			row[c-begin] = x
			pivot -= x * x
			y -= x * f.direction[c]
		}
		if pivot < 1e-13*diagonal {
			pivot = diagonal // the maximum is not unique
		}
		row[r-begin] = math.Sqrt(pivot)
		f.direction[r] = y / row[r-begin]
	}
	for r := n - 1; r > 0; r-- {
		begin := f.begin[r]
		row := f.factor[f.row[r]+begin : f.row[r]+r+1]
		f.direction[r] /= row[r-begin]
		for c := begin; c < r; c++ {
			f.direction[c] -= row[c-begin] * f.direction[r]
		}
	}
}
