package report

import (
	"fmt"

	"contend/scenarios"
)

// leasePart tells where those lost that did.
func leasePart(l *scenarios.LeaseLosers) part {
	return part{
		notes: []string{fmt.Sprintf("Of those that lost, %d lost at the read (%s), where no guard is, and %d at the conditional write. Periods a round: %d.",
			l.AtRead, percent(l.ReadShare), l.AtWrite, l.Periods)},
		figures: []figure{
			{name: "lost at the read", value: l.AtRead, unit: numbers},
			{name: "lost at the write", value: l.AtWrite, unit: numbers},
			{name: "lost at the read share", value: l.ReadShare, unit: shares},
			{name: "periods a round", value: l.Periods, unit: numbers},
		},
	}
}
