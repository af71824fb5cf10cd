/** Tests how ROLES and FRONT_ENDS divide the program into processes. */
import { availableParallelism } from 'node:os';
import { describe, expect, test } from 'vitest';
import { readConfig } from '../../src/app/config.js';

const planOf = (environment: Record<string, string>) => readConfig(environment).processes;

describe('the plan of the processes', () => {
  test('has one process with both roles by default', () => {
    expect(planOf({})).toEqual({
      roles: { http: true, worker: true },
      name: undefined,
      isChild: false,
      children: [],
      frontEnds: 1,
    });
    expect(planOf({ FRONT_ENDS: '1', ROLES: 'worker' })).toMatchObject({ name: undefined, children: [] });
  });

  test('has a worker and its front ends with FRONT_ENDS above 1', () => {
    expect(planOf({ FRONT_ENDS: '2' })).toEqual({
      roles: { http: false, worker: true },
      name: 'worker',
      isChild: false,
      children: ['front-end-1', 'front-end-2'],
      frontEnds: 2,
    });
    expect(planOf({ FRONT_ENDS: '64' }).children).toHaveLength(64);
  });

  test('makes the first process a front end without the role worker', () => {
    expect(planOf({ FRONT_ENDS: '3', ROLES: 'http' })).toMatchObject({
      roles: { http: true, worker: false },
      name: 'front-end-1',
      children: ['front-end-2', 'front-end-3'],
    });
  });

  test('gives a started front end the role http and no children', () => {
    expect(planOf({ FRONT_ENDS: '3', FRONT_END_NAME: 'front-end-2' })).toEqual({
      roles: { http: true, worker: false },
      name: 'front-end-2',
      isChild: true,
      children: [],
      frontEnds: 3,
    });
  });

  test('counts the available processors less one with FRONT_ENDS=auto', () => {
    expect(planOf({ FRONT_ENDS: 'auto' }).frontEnds).toBe(Math.max(1, availableParallelism() - 1));
  });

  test.each(['0', '65', '2.5', '-1', 'all', ''])('refuses FRONT_ENDS=%s', (value) => {
    expect(() => readConfig({ FRONT_ENDS: value })).toThrow('FRONT_ENDS must be 1 to 64 or auto');
  });

  test.each(['2', 'auto'])('refuses FRONT_ENDS=%s with ROLES=worker', (value) => {
    expect(() => readConfig({ FRONT_ENDS: value, ROLES: 'worker' })).toThrow(
      'FRONT_ENDS must be 1 if ROLES is worker',
    );
  });
});
