/** Divides the roles of the program among its processes, according to ROLES and FRONT_ENDS. */
import { availableParallelism } from 'node:os';

const FRONT_ENDS_MAX = 64;

export interface ProcessPlan {
  readonly roles: { readonly http: boolean; readonly worker: boolean };
  /** Name of this process, such as `front-end-1`; undefined if the program has only one process. */
  readonly name: string | undefined;
  /** True if the first process of the program has started this one. */
  readonly isChild: boolean;
  /** Names of the front ends that this process starts. */
  readonly children: readonly string[];
  readonly frontEnds: number;
}

/**
 * The first process is the worker, and starts all front ends. Without the worker role, it is the first front
 * end, and starts the others.
 * @param frontEnds a number, or `auto` for the number of available processors less one, but at least one
 * @param childName name that the first process gave to this process
 * @throws Error that completes a sentence about FRONT_ENDS
 */
export function planProcesses(
  roles: readonly string[],
  frontEnds: string,
  childName: string | undefined,
): ProcessPlan {
  const count = frontEnds === 'auto' ? Math.max(1, availableParallelism() - 1) : Number(frontEnds);
  if (!Number.isInteger(count) || count < 1 || count > FRONT_ENDS_MAX)
    throw new Error(`must be 1 to ${FRONT_ENDS_MAX} or auto`);
  const http = roles.includes('http');
  const worker = roles.includes('worker');
  const plan = (isHttp: boolean, isWorker: boolean, more: Partial<ProcessPlan>): ProcessPlan =>
    Object.freeze({
      roles: Object.freeze({ http: isHttp, worker: isWorker }),
      name: undefined,
      isChild: false,
      children: [],
      frontEnds: count,
      ...more,
    });
  if (childName !== undefined) return plan(true, false, { name: childName, isChild: true });
  if (frontEnds !== '1' && !http) throw new Error('must be 1 if ROLES is worker');
  if (count === 1) return plan(http, worker, {});
  if (process.platform === 'win32')
    throw new Error('must be 1 on Windows, where processes cannot share a port');
  const [first, ...others] = Array.from({ length: count }, (_, i) => `front-end-${i + 1}`);
  return worker
    ? plan(false, true, { name: 'worker', children: [first!, ...others] })
    : plan(true, false, { name: first!, children: others });
}
