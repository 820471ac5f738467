package cmd

import (
	"github.com/spf13/cobra"

	"contend/cmd/suite"
)

//go:generate sh -c "go run .. suite-schema >../examples/suite.schema.json"

// newSuiteSchema prints what examples/suite.schema.json is. It is not listed: it
// is there to make that file.
func newSuiteSchema(c console) *cobra.Command {
	return &cobra.Command{
		Use: "suite-schema", Short: "print the JSON Schema of suite files", Hidden: true, Args: noArguments,
		RunE: func(*cobra.Command, []string) error {
			schema, err := suite.Schema(suiteScenarios())
			if err == nil {
				_, err = c.out.Write(schema)
			}
			return err
		},
	}
}
