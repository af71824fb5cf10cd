/** Tests settings whose range is narrower with an external database than with an embedded one. */
import { describe, expect, test } from 'vitest';
import { readConfig } from '../../src/app/config.js';
import { PRODUCTION_RANGES } from '../../src/app/settings.js';

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
