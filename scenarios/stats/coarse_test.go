package stats_test

import (
	"fmt"
	"time"

	"contend/scenarios/stats"
)

// The judge is given the record of a watch and says the same.
func ExampleCoarse() {
	fmt.Println(stats.Coarse(1234567*time.Microsecond), stats.Coarse(8*time.Minute+35500*time.Millisecond), stats.Coarse(1234*time.Microsecond))
	// Output: 1.23s 8m36s 1.2ms
}
