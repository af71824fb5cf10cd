/**
 * Amounts as decimal text: how version 2 of the partner API writes each member whose name ends in `Usd`. Done on the JSON text, so
 * that no digit is lost. A member's name is never mistaken for a part of a string: inside one its quotes would be escaped.
 */

const DECIMAL = '-?(?:0|[1-9]\\d*)(?:\\.\\d+)?';
const NUMBER_MEMBER = new RegExp(`("\\w*Usd":)(${DECIMAL})(?=[,}])`, 'g');
const ANY_MEMBER = new RegExp(`("\\w*Usd"\\s*:\\s*)(?:"(${DECIMAL})"|(-?[0-9][0-9.eE+-]*))`, 'g');

/** @param json without white space between tokens, as this program writes it; amounts in it are numbers */
export const withDecimalText = (json: string): string => json.replace(NUMBER_MEMBER, '$1"$2"');

/**
 * The other way, of a JSON text that was sent: decimal texts become numbers, and numbers, which are not accepted, become texts.
 */
export const withNumbers = (json: string): string =>
  json.replace(ANY_MEMBER, (_all, name: string, text: string | undefined, number: string | undefined) =>
    text === undefined ? `${name}"${number}"` : name + text,
  );

/** What stands for an amount in a schema. */
const DECIMAL_TEXT = { type: 'string', pattern: `^${DECIMAL}$` };

/** A schema, or a document with schemas, whose amounts are decimal texts. */
export function withDecimalSchemas(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withDecimalSchemas);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [
      name,
      name.endsWith('Usd') ? amountSchema(member) : withDecimalSchemas(member),
    ]),
  );
}

/** A number's schema as that of a decimal text; anything else, such as an example's number, as a text where it is a number. */
function amountSchema(member: unknown): unknown {
  if (typeof member === 'number') return String(member);
  if (typeof member !== 'object' || member === null) return member;
  const { type, anyOf, ...rest } = member as { type?: unknown; anyOf?: unknown[] };
  if (type === 'number') return { ...rest, ...DECIMAL_TEXT };
  return anyOf === undefined ? withDecimalSchemas(member) : { ...rest, anyOf: anyOf.map(amountSchema) };
}
