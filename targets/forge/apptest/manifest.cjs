// Prints what the full validation of @forge/manifest finds in the manifest of a
// folder, as JSON: [{level, message}].
//
//     node manifest.cjs APP

const { ProcessorBuilder, ValidationTypes } = require('@forge/manifest');

process.chdir(process.argv[2]);
ProcessorBuilder.instance()
  .withValidation(ValidationTypes.FULL)
  .build()
  .process()
  .then(({ success, errors = [] }) => {
    const found = errors.map(({ level, message }) => ({ level, message }));
    if (!success && found.length === 0) found.push({ level: 'error', message: 'no reason given' });
    console.log(JSON.stringify(found));
  });
