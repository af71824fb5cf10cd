/**
 * Tests settings whose range is narrower with an external database than with an embedded one, and settings
 * with whitespace around their values.
 */
import { describe, expect, test } from 'vitest';
import { readConfig } from '../../src/app/config.js';
import { Environment, PRODUCTION_RANGES } from '../../src/app/settings.js';

const DATABASE_URL = 'postgres://spindle@127.0.0.1/spindle';

describe.each(Object.entries(PRODUCTION_RANGES))('the range of %s', (name, { minimum, maximum }) => {
  /** Values of the other settings that are long enough for every tested value. */
  const others = { IDEMPOTENCY_TTL_S: '2592000', REQUEST_ID_WINDOW_S: '900' };

  test.each([1, 12, minimum - 1, maximum + 1])(
    `refuses the value %i of the setting ${name} with an external database, and names the setting`,
    (value) => {
      const environment = { ...others, DATABASE_URL, [name]: String(value) };
      expect(() => readConfig(environment)).toThrow(new RegExp(`^${name} must be [^;]*$`));
    },
  );

  test.each([minimum, maximum])(
    `accepts the value %i of the setting ${name} with an external database`,
    (value) => {
      const given = { ...others, [name]: String(value) };
      expect(readConfig({ ...given, DATABASE_URL })).toMatchObject({ [name]: value });
    },
  );

  test(`accepts smaller values of the setting ${name} with an embedded database, and in tests`, () => {
    const given = { ...others, REQUEST_ID_WINDOW_S: '1', [name]: '12' };
    expect(readConfig(given)).toMatchObject({ [name]: 12 });
    expect(readConfig({ ...given, DATABASE_URL, TEST_CONSTANTS: '{}' })).toMatchObject({ [name]: 12 });
  });
});

const SECRETS_AND_URLS: readonly [string, string][] = [
  ['OPERATOR_API_KEY', 'an-operator-key-of-some-length'],
  ['METRICS_TOKEN', 'a-token-for-the-metrics'],
  ['SEEDS_KEY', `${'A'.repeat(43)}=`],
  ['WEBHOOK_SECRETS_KEY', `${'A'.repeat(43)}=`],
  ['LOG_KEY', 'PRIVATE+KEY+name+id+key'],
  ['REDIS_URL', 'redis://127.0.0.1:6379'],
  ['DATABASE_URL', DATABASE_URL],
  ['DATABASE_DIRECT_URL', DATABASE_URL],
  ['SMTP_URL', 'smtp://127.0.0.1'],
  ['SPINDLE_URL', 'http://127.0.0.1:8080'],
];

test.each(SECRETS_AND_URLS)(
  'a start refuses whitespace around %s by name, without its value',
  (name, value) => {
    expect(readConfig({ [name]: value })).toMatchObject({ [name]: value });
    for (const [given, what] of [
      [`${value}\n`, 'a line break'],
      [`${value}\r\n`, 'a line break'],
      [` ${value}`, 'a space'],
    ] as const)
      expect(() => readConfig({ [name]: given })).toThrow(
        `${name} begins or ends with ${what}. Remove the whitespace around its value`,
      );
  },
);

test('the secrets and URLs of this test are all that there are', () => {
  const names = Object.keys(Environment.properties).filter((name) => /_(KEY|TOKEN|URL)$/.test(name));
  expect(names.sort()).toEqual(SECRETS_AND_URLS.map(([name]) => name).sort());
});
