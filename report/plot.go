package report

import "math"

// plot is a picture as data: what it shows and how. A look draws it.
type plot struct {
	caption string
	x, y    axis
	form    form
	series  []series
	marks   []mark
	low     bool // it takes little room
}

// axis is from one value to another; an infinite end is as far as the points go.
type axis struct {
	unit     string // what is counted on it
	from, to float64
	write    func(float64) string // a value, for people; nil: as any number
	ticks    int                  // so many values stand beside the x axis; 0: the caption tells
}

// form says what is between the points.
type form int

const (
	held    form = iota // each value holds until the next point, and the first before that
	nearest             // each value is that of all that is nearest to its point
	joined              // a line from point to point
	apart               // a place of its own for each point
)

// series are the points of a line, in the order of x. A y that is not a number is a gap.
type series struct {
	name   string
	points []point
}

type point struct{ x, y float64 }

// mark is a sign at a place on the x axis.
type mark struct {
	x    float64
	sign string
}

// at is the value at a place on the x axis.
func (s series) at(x float64, form form) float64 {
	found := s.points[0]
	for _, p := range s.points[1:] {
		if form == held && p.x >= x || form == nearest && p.x-x > x-found.x {
			break
		}
		found = p
	}
	return found.y
}

// gap is a y of nothing, and openEnd the end of an axis that goes as far as the points do.
var gap, openEnd = math.NaN(), math.Inf(1)
