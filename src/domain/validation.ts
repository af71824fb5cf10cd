/** Turns every error that a compiled typebox schema finds into a fault for the caller. */
import type { TSchema } from '#typebox';
import type { Validator } from '#typebox/compile';
import { Settings } from '#typebox/system';
import type { Fault } from './errors.js';

/** Of one body; the rest is not looked for. */
export const FAULTS_MAX = 100;

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
      // Its alternatives' errors came before it, one by one: they are one fault.
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
    case 'const':
      return `must be ${JSON.stringify(error.params.allowedValue)}`;
    default:
      return error.message;
  }
}

/** The message of a value that is not of a JSON Schema type. */
export function typeMessage(type: string | string[]): string {
  // JSON has no other way to an infinite number than one that no double holds.
  if (type === 'number') return 'must be a finite number';
  if (type === 'integer' || type === 'object' || type === 'array') return `must be an ${type}`;
  return `must be a ${type}`;
}

/**
 * The value with each of its own lists cut to one item more than its bound. typebox looks at all items of a list that is
 * too long: 32,000 of them took it 14 ms.
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

// typebox stops at 8 errors unless told otherwise, by a setting for the whole process.
function allErrors(validator: Validator, value: unknown) {
  const { maxErrors } = Settings.Get();
  Settings.Set({ maxErrors: FAULTS_MAX });
  try {
    return validator.Errors(value);
  } finally {
    Settings.Set({ maxErrors });
  }
}
