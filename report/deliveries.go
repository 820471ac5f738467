package report

import "contend/scenarios"

// deliveryPart tells which way each delivery took.
func deliveryPart(deliveries []scenarios.DeliveryBranch) part {
	p := part{heading: "What the deliveries did",
		columns: []column{{head: "delivery", of: "at"}, {head: "branch of the handler", of: "outcome"}, {head: "rounds", figure: "deliveries", unit: numbers}}}
	for _, d := range deliveries {
		p.rows = append(p.rows, []any{d.Delivery, d.Branch, d.Count})
	}
	return p
}
