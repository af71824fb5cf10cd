/**
 * Tests the fast parser of a spin's body. JSON.parse and the schema must accept every body that it accepts,
 * with the same values.
 */
import fc from 'fast-check';
import { Compile } from 'typebox/compile';
import { describe, expect, test } from 'vitest';
import { SpinBody } from '../../../src/api/spins/contract.js';
import { readPlainSpin } from '../../../src/api/spins/plainSpin.js';

const validator = Compile(SpinBody);
const read = (text: string) => readPlainSpin(Buffer.from(text));

/**
 * Checks that the fast parser either declines a body, or reads a valid spin with the same values as
 * JSON.parse. Returns whether the parser accepted the body.
 */
function agrees(bytes: Buffer): boolean {
  const body = readPlainSpin(bytes);
  if (body === undefined) return false;
  expect(body).toStrictEqual(JSON.parse(bytes.toString()));
  expect(validator.Check(body)).toBe(true);
  return true;
}

const plainText = fc
  .array(fc.integer({ min: 0x20, max: 0x7e }), { minLength: 1, maxLength: 128 })
  .map((codes) => String.fromCharCode(...codes))
  .filter((text) => !/["\\]/.test(text));
const whole = fc.integer({ min: 0, max: 2_147_483_647 }).map(String);
const decimal = fc
  .tuple(
    fc.integer({ min: 0, max: 99_999_999 }),
    fc.option(fc.stringMatching(/^\d{1,6}$/), { nil: undefined }),
  )
  .map(([whole, fraction]) => (fraction === undefined ? `${whole}` : `${whole}.${fraction}`));
/** A value for each member of the schema, so that the fast parser can't lack a new one. */
const members = fc
  .tuple(
    ...Object.entries(SpinBody.properties).map(([name, schema]) => {
      const isValid = Compile(schema);
      const value = { string: plainText.map((text) => `"${text}"`), number: decimal, integer: whole }[
        schema.type
      ];
      return value.filter((text) => isValid.Check(JSON.parse(text))).map((text) => [name, text] as const);
    }),
  )
  .chain((all) => fc.shuffledSubarray(all, { minLength: all.length, maxLength: all.length }));
const space = fc.constantFrom('', ' ', '  ');

describe('the fast parser of spin bodies', () => {
  test('the fast parser reads whatever ordinary JSON writers produce, with members in any order', () => {
    fc.assert(
      fc.property(members, space, space, (entries, before, after) => {
        const text = `{${before}${entries.map(([name, value]) => `"${name}"${before}:${after}${value}`).join(`,${after}`)}${after}}`;
        expect(agrees(Buffer.from(text))).toBe(true);
      }),
      { numRuns: 2000 },
    );
  });

  test("whatever bytes of a spin's body change, the fast parser declines the body or reads it as JSON.parse does", () => {
    const bytes = fc.constantFrom(
      ...Buffer.from('"\\{}[]:,. 0123456789eE+-tfn\n\t\0\u007fgpwrx\u00ff', 'latin1'),
    );
    fc.assert(
      fc.property(
        members,
        fc.array(fc.tuple(fc.nat(), bytes, fc.constantFrom('put', 'insert', 'remove')), {
          minLength: 1,
          maxLength: 3,
        }),
        (entries, changes) => {
          let text = Buffer.from(`{${entries.map(([name, value]) => `"${name}":${value}`).join(',')}}`);
          for (const [place, byte, how] of changes) {
            const at = place % text.length;
            const kept = how === 'insert' ? at : at + 1;
            const put = how === 'remove' ? [] : [byte];
            text = Buffer.concat([text.subarray(0, at), Buffer.from(put), text.subarray(kept)]);
          }
          agrees(text);
        },
      ),
      { numRuns: 20_000 },
    );
  });

  test.each([
    ['', 'nothing'],
    ['{}', 'no members'],
    ['{"gameId":1,"playerId":"p"}', 'a member is missing'],
    ['{"gameId":1,"gameId":2,"playerId":"p","wagerUsd":1}', 'a member twice'],
    ['{"gameId":1,"playerId":"p","wagerUsd":1,"x":1}', 'another member'],
    ['{"gameId":1,"playerId":"p","wagerUsd":1,}', 'a comma too many'],
    ['{"gameId":1,"playerId":"p","wagerUsd":1}}', 'something behind it'],
    ['{"gameId":01,"playerId":"p","wagerUsd":1}', 'a leading zero'],
    ['{"gameId":0,"playerId":"p","wagerUsd":1}', 'no game'],
    ['{"gameId":1.5,"playerId":"p","wagerUsd":1}', 'half a game'],
    ['{"gameId":1,"playerId":"p","wagerUsd":1.}', 'no decimals'],
    ['{"gameId":1,"playerId":"p","wagerUsd":.5}', 'no whole part'],
    ['{"gameId":1,"playerId":"p","wagerUsd":1.2.3}', 'two points'],
    ['{"gameId":1,"playerId":"p","wagerUsd":1e2}', 'an exponent'],
    ['{"gameId":1,"playerId":"p","wagerUsd":-1}', 'a sign'],
    ['{"gameId":1,"playerId":"p","wagerUsd":0.25000000000001}', 'a number of 16 characters'],
    ['{"gameId":1,"playerId":"","wagerUsd":1}', 'an empty text'],
    [`{"gameId":1,"playerId":"${'p'.repeat(129)}","wagerUsd":1}`, 'a text of 129 characters'],
    ['{"gameId":1,"playerId":"\\u0070","wagerUsd":1}', 'an escape'],
    ['{"gameId":1,"playerId":"é","wagerUsd":1}', 'a text beyond ASCII'],
    ['{"gameId":1,"playerId":"p","wagerUsd":1,"requestId":null}', 'null'],
    ['{"gameId":1,\n"playerId":"p","wagerUsd":1}', 'a line break'],
  ])('the fast parser declines the body %s: %s', (text) => {
    expect(read(text)).toBeUndefined();
  });

  test('the fast parser reads a wager as the same double as JSON.parse', () => {
    fc.assert(
      fc.property(
        fc.stringMatching(/^(0|[1-9]\d{0,8})\.\d{1,6}$/).filter((text) => text.length <= 15),
        (text) => {
          expect(read(`{"gameId":1,"playerId":"p","wagerUsd":${text}}`)!.wagerUsd).toBe(Number(text));
        },
      ),
      { numRuns: 5000 },
    );
  });
});
