/** Turns schemas into those of an OpenAPI document: a schema that the domain exports becomes a named component. */
import type { TSchema } from '#typebox';
import * as par from '../domain/par.js';
import * as requests from '../domain/requests.js';

/** The name of a schema in the documents is the name under which the domain exports it. */
const NAMES: ReadonlyMap<unknown, string> = new Map(
  Object.entries({ ...requests, ...par })
    .filter(([, value]) => typeof value === 'object' && '~kind' in value)
    .map(([name, schema]) => [schema, name]),
);

/** The schemas of one document. */
export class SchemaReferences {
  readonly #named = new Map<string, object>();

  /** A schema as the document shows it: a reference where it has a name, else the schema itself. */
  of(schema: TSchema): object {
    const name = NAMES.get(schema);
    if (name === undefined) return this.#inline(schema);
    // First the name: a schema that refers to itself ends here.
    if (!this.#named.has(name)) {
      this.#named.set(name, {});
      this.#named.set(name, this.#inline(schema));
    }
    return { $ref: `#/components/schemas/${name}` };
  }

  /** All named schemas that were referred to so far, by name. */
  named(): Record<string, object> {
    return sorted(Object.fromEntries(this.#named));
  }

  #inline(schema: object): object {
    return enumOf(schema) ?? (this.#members(schema) as object);
  }

  #members(value: unknown): unknown {
    if (Array.isArray(value)) return value.map((each) => this.#member(each));
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, this.#member(member)]));
  }

  #member(value: unknown): unknown {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return this.#members(value);
    return this.of(value as TSchema);
  }
}

/** A choice of literals as an `enum`, which client generators read best; undefined where the schema is no such choice. */
function enumOf(schema: object): object | undefined {
  const { anyOf, ...rest } = schema as { anyOf?: readonly { type?: string; const?: unknown }[] };
  if (anyOf === undefined || !anyOf.every((choice) => choice.type === 'string' && 'const' in choice)) {
    return undefined;
  }
  return { type: 'string', enum: anyOf.map((choice) => choice.const), ...rest };
}

/** The same members in the order of their names. */
export function sorted<T>(members: Readonly<Record<string, T>>): Record<string, T> {
  return Object.fromEntries(Object.entries(members).sort(([a], [b]) => (a < b ? -1 : 1)));
}
