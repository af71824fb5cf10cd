/** Turns every error that a compiled typebox schema finds into a fault for the caller. */
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
  const errors = allErrors(validator, withShortLists(validator.Type() as ListSchema, value));
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

interface ListSchema {
  readonly properties?: Readonly<Record<string, ListSchema>>;
  readonly items?: ListSchema;
  readonly maxItems?: number;
}

/**
 * The value with each list that has a bound cut to one item more than that. typebox looks at all items of a list that is
 * too long: 5,000 numbers took it 9 ms.
 */
function withShortLists(schema: ListSchema, value: unknown): unknown {
  const { properties, items, maxItems = Number.POSITIVE_INFINITY } = schema;
  if (Array.isArray(value)) {
    const short = value.length > maxItems ? value.slice(0, maxItems + 1) : value;
    return items?.properties === undefined ? short : short.map((item) => withShortLists(items, item));
  }
  if (properties === undefined || typeof value !== 'object' || value === null) return value;
  let short = value as Record<string, unknown>;
  for (const [name, member] of Object.entries(properties)) {
    if (!Object.hasOwn(short, name)) continue;
    const cut = withShortLists(member, short[name]);
    if (cut !== short[name]) short = { ...short, [name]: cut };
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
