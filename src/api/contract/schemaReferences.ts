/**
 * Converts schemas to the schemas of an OpenAPI document. A schema that a contract exports becomes a named
 * component.
 */
import type { TSchema } from '#typebox';
import * as apiKey from '../../domain/apiKey.js';
import * as apiVersion from '../../domain/apiVersion.js';
import * as auditEntry from '../../domain/auditEntry.js';
import * as communalRules from '../../domain/communalRules.js';
import * as blackjackRules from '../../domain/games/blackjackRules.js';
import * as prizeTable from '../../domain/games/prizeTable.js';
import * as rafflePool from '../../domain/games/rafflePool.js';
import * as ledgerDay from '../../domain/ledgerDay.js';
import * as operator from '../../domain/operator.js';
import * as par from '../../domain/par.js';
import * as partnerMove from '../../domain/partnerMove.js';
import * as programCheck from '../../domain/programCheck.js';
import * as leaves from '../../domain/publicLog/leaves.js';
import { Page, SandboxMark, VoidBody } from '../../domain/schema.js';
import * as settlement from '../../domain/settlement.js';
import * as significantEvents from '../../domain/significantEvents.js';
import * as webhook from '../../domain/webhook.js';
import * as webhookEvents from '../../domain/webhookEvents.js';
import { EVENTS } from '../../domain/webhookEvents.js';
import { CONTRACTS } from '../index.js';
import * as errorResponse from './errorResponse.js';

const DOMAIN = [
  apiKey,
  leaves,
  apiVersion,
  auditEntry,
  blackjackRules,
  communalRules,
  ledgerDay,
  operator,
  par,
  partnerMove,
  prizeTable,
  programCheck,
  rafflePool,
  settlement,
  significantEvents,
  webhook,
  webhookEvents,
];

const isSchema = (member: readonly [string, unknown]): member is [string, TSchema] =>
  typeof member[1] === 'object' && member[1] !== null && '~kind' in member[1];

/**
 * The named schemas: those that contracts export, and those of the domain modules that contracts are built
 * from.
 */
export const NAMED_SCHEMAS: readonly (readonly [string, TSchema])[] = [
  ...[...DOMAIN, errorResponse, ...Object.values(CONTRACTS)].flatMap((each) =>
    Object.entries<unknown>(each).filter(isSchema),
  ),
  ['Page', Page],
  ['SandboxMark', SandboxMark],
  ['VoidBody', VoidBody],
  ...Object.entries(EVENTS).flatMap(([type, schema]): [string, TSchema][] => [
    [`${pascalCase(type)}Event`, schema],
    [`${pascalCase(type)}Data`, schema.properties.data],
  ]),
];

/**
 * Names of schemas in the documents. A schema has the name under which it is exported; an event schema is
 * named after its event type.
 */
const NAMES: ReadonlyMap<unknown, string> = new Map(
  NAMED_SCHEMAS.map(([name, schema]) => [identityOf(schema), name]),
);

/**
 * Returns an object that a schema has in common with its optional copy: for a union, the array of its
 * alternatives; for any other schema, the schema itself.
 */
function identityOf(schema: object): object {
  return (schema as { anyOf?: object }).anyOf ?? schema;
}

/** Converts an event type to PascalCase: `spin.large_win` becomes SpinLargeWin. */
function pascalCase(eventType: string): string {
  return eventType
    .split(/[._]/)
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('');
}

export class SchemaReferences {
  readonly #named = new Map<string, object>();

  /**
   * Returns a schema in the form that the document contains: a reference if the schema has a name, otherwise
   * the schema itself.
   */
  of(schema: TSchema): object {
    const name = NAMES.get(identityOf(schema));
    if (name === undefined) return this.#inline(schema);
    // The name is registered before the schema is converted, so that the conversion of a recursive schema
    // ends here.
    if (!this.#named.has(name)) {
      this.#named.set(name, {});
      this.#named.set(name, this.#inline(schema));
    }
    return { $ref: `#/components/schemas/${name}` };
  }

  named(): Record<string, object> {
    return sorted(Object.fromEntries(this.#named));
  }

  #inline(schema: object): object {
    return (
      enumOf(schema) ?? this.#discriminated(schema) ?? (this.#members(nullableOf(schema) ?? schema) as object)
    );
  }

  /**
   * Returns a union of named objects with a discriminator, in the form that code generators read. Returns
   * undefined if the schema is no such union.
   */
  #discriminated(schema: object): object | undefined {
    const { anyOf, ...rest } = schema as { anyOf?: readonly ObjectSchema[] };
    const first = anyOf?.[0]?.properties ?? {};
    const propertyName = Object.keys(first).find((name) =>
      anyOf?.every((choice) => choice.properties?.[name]?.const !== undefined),
    );
    if (anyOf === undefined || propertyName === undefined) return undefined;
    const choices = anyOf.map((choice) => ({
      value: choice.properties![propertyName]!.const as string,
      reference: this.of(choice as TSchema) as { $ref: string },
    }));
    return {
      ...rest,
      oneOf: choices.map(({ reference }) => reference),
      discriminator: {
        propertyName,
        mapping: Object.fromEntries(choices.map(({ value, reference }) => [value, reference.$ref])),
      },
    };
  }

  #members(value: unknown): unknown {
    if (Array.isArray(value)) return value.map((each) => this.#member(each));
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(
      Object.entries(value).map(([name, member]) => [
        name,
        name === 'pattern' && typeof member === 'string' ? portable(member) : this.#member(member),
      ]),
    );
  }

  #member(value: unknown): unknown {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return this.#members(value);
    return this.of(value as TSchema);
  }
}

/**
 * Rewrites a pattern for the regular expressions of every language: control characters become ranges. Lone
 * surrogates are removed from the pattern, because only some languages can express them. The service itself
 * still rejects them.
 */
const portable = (pattern: string): string =>
  pattern.replaceAll('\\p{Cc}', '\\x00-\\x1f\\x7f-\\x9f').replaceAll('\\p{Cs}', '');

interface ObjectSchema {
  readonly properties?: Readonly<Record<string, { readonly const?: unknown }>>;
}

/**
 * Returns a union of a primitive type and null in the short form of OpenAPI 3.1. Returns undefined if the
 * schema is no such union.
 */
function nullableOf(schema: object): object | undefined {
  const { anyOf, ...rest } = schema as { anyOf?: readonly { type?: string; enum?: unknown }[] };
  if (anyOf?.length !== 2 || anyOf[1]!.type !== 'null' || NAMES.has(identityOf(anyOf[0]!))) return undefined;
  const { type, ...members } = anyOf[0]!;
  if (type !== 'string' && type !== 'number' && type !== 'integer') return undefined;
  return { type: [type, 'null'], ...members, ...rest };
}

/**
 * Returns a union of string literals as an `enum`, which client generators support best. Returns undefined if
 * the schema is no such union.
 */
function enumOf(schema: object): object | undefined {
  const { anyOf, ...rest } = schema as { anyOf?: readonly { type?: string; const?: unknown }[] };
  if (anyOf === undefined || !anyOf.every((choice) => choice.type === 'string' && 'const' in choice)) {
    return undefined;
  }
  return { type: 'string', enum: anyOf.map((choice) => choice.const), ...rest };
}

export function sorted<T>(members: Readonly<Record<string, T>>): Record<string, T> {
  return Object.fromEntries(Object.entries(members).sort(([a], [b]) => (a < b ? -1 : 1)));
}
