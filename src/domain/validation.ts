/** Converts all errors of a compiled typebox schema to faults for the caller. */
import type { TSchema } from '#typebox';
import type { Validator } from '#typebox/compile';
import { Settings } from '#typebox/system';
import type { Fault } from './errors.js';
import { NO_TIME } from './rfc3339.js';

/** Maximum number of faults of one body. Further faults are not searched for. */
export const FAULTS_MAX = 100;

export interface SchemaFaults {
  readonly faults: Fault[];
  /** Whether at least one fault is a missing required field. */
  readonly isMissing: boolean;
}

/** @returns undefined if the value matches. `messages` describes patterns in words, by pattern. */
export function schemaFaults(
  validator: Validator,
  value: unknown,
  messages: Readonly<Record<string, string>> = {},
): SchemaFaults | undefined {
  if (validator.Check(value)) return undefined;
  const errors = allErrors(validator, withShortLists(validator.Type(), value));
  const faults: Fault[] = [];
  let isMissing = false;
  for (const error of errors) {
    const path = error.instancePath;
    if (error.keyword === 'required') {
      isMissing = true;
      for (const name of error.params.requiredProperties) {
        faults.push({ path: `${path}/${name}`, message: 'is required' });
      }
    } else if (error.keyword === 'anyOf') {
      // typebox reports an error for each alternative before the error of the union. All these errors are
      // combined into one fault.
      const isAlternative = (fault: Fault): boolean => fault.path === path;
      const alternatives = faults.filter(isAlternative).map((fault) => fault.message);
      while (faults.some(isAlternative)) faults.splice(faults.findIndex(isAlternative), 1);
      faults.push({ path, message: alternatives.join(' or ') });
    } else {
      faults.push({ path, message: messageOf(error, messages) });
    }
  }
  return { faults: faults.slice(0, FAULTS_MAX), isMissing };
}

type SchemaError = ReturnType<Validator['Errors']>[number];

function messageOf(error: SchemaError, messages: Readonly<Record<string, string>>): string {
  switch (error.keyword) {
    case 'pattern': {
      const pattern = String(error.params.pattern);
      return messages[pattern] ?? `must match ${pattern}`;
    }
    case 'type':
      return typeMessage(error.params.type);
    case 'format':
      return error.params.format === 'date-time' ? NO_TIME : error.message;
    case 'const':
      return `must be ${JSON.stringify(error.params.allowedValue)}`;
    default:
      return error.message;
  }
}

/** Returns the message for a value that does not have a JSON Schema type. */
export function typeMessage(type: string | string[]): string {
  // In JSON, an infinite number can only come from a number too large for a double.
  if (type === 'number') return 'must be a finite number';
  if (type === 'integer' || type === 'object' || type === 'array') return `must be an ${type}`;
  return `must be a ${type}`;
}

/**
 * Returns the value with each list that is its direct member cut to one item more than the limit of that
 * list. typebox examines all items of a list that is too long: 32,000 of them took it 14 ms.
 */
function withShortLists(schema: TSchema, value: unknown): unknown {
  const { properties = {} } = schema as { properties?: Record<string, { maxItems?: number }> };
  let short = value;
  for (const [name, { maxItems = Number.POSITIVE_INFINITY }] of Object.entries(properties)) {
    const list = (value as Record<string, unknown> | null)?.[name];
    if (!Array.isArray(list) || list.length <= maxItems) continue;
    short = { ...(short as object), [name]: list.slice(0, maxItems + 1) };
  }
  return short;
}

// typebox stops at 8 errors by default. This setting applies to the whole process, so the default is restored
// afterwards.
function allErrors(validator: Validator, value: unknown) {
  const { maxErrors } = Settings.Get();
  Settings.Set({ maxErrors: FAULTS_MAX });
  try {
    return validator.Errors(value);
  } finally {
    Settings.Set({ maxErrors });
  }
}
