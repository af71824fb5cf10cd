/** Turns what a compiled typebox schema finds wrong with a value into faults for the caller: all of them. */
import type { Validator } from 'typebox/compile';
import { Settings } from 'typebox/system';
import type { Fault } from './errors.js';

const SCHEMA_FAULTS_MAX = 10_000;

export interface SchemaFaults {
  readonly faults: Fault[];
  /** At least one fault is a required field that is missing. */
  readonly isMissing: boolean;
}

/** @returns undefined where the value fits the schema. `messages` says a pattern's rule in words, by pattern. */
export function schemaFaults(
  validator: Validator,
  value: unknown,
  messages: Readonly<Record<string, string>> = {},
): SchemaFaults | undefined {
  if (validator.Check(value)) return undefined;
  const faults: Fault[] = [];
  let isMissing = false;
  for (const error of allErrors(validator, value)) {
    if (error.keyword === 'required') {
      isMissing = true;
      for (const name of error.params.requiredProperties) {
        faults.push({ path: `${error.instancePath}/${name}`, message: 'is required' });
      }
    } else if (error.keyword === 'pattern') {
      const pattern = String(error.params.pattern);
      faults.push({ path: error.instancePath, message: messages[pattern] ?? `must match ${pattern}` });
    } else if (error.keyword !== 'anyOf') {
      faults.push({ path: error.instancePath, message: error.message });
    }
  }
  return { faults, isMissing };
}

// typebox stops at 8 errors unless told otherwise, by a setting for the whole process.
function allErrors(validator: Validator, value: unknown) {
  const { maxErrors } = Settings.Get();
  Settings.Set({ maxErrors: SCHEMA_FAULTS_MAX });
  try {
    return validator.Errors(value);
  } finally {
    Settings.Set({ maxErrors });
  }
}
