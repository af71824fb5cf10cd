/** Schemas and operation of program checks: processes compare their own files with the list of the build. */
import { Type } from '#typebox';
import { ProgramCheck } from '../../domain/programCheck.js';
import { Page, pageMembers } from '../../domain/schema.js';
import { API_VERSION } from '../contract/apis.js';
import { endpointsOf } from '../contract/endpoint.js';

const { operator } = endpointsOf('Audit log');

export const ProgramCheckList = Type.Object({ checks: Type.Array(ProgramCheck), ...pageMembers });

export const listProgramChecks = operator.get('listProgramChecks', '/program-checks', {
  summary: "List the checks of the program's files, newest first",
  description:
    'Each process compares the program files with the build manifest before it deals, the installed packages within a minute of its start, and both once a day. The audit log also records every difference. Results are kept permanently.',
  query: Page,
  response: ProgramCheckList,
  example: {
    checks: [
      {
        checkId: 12,
        at: '2026-11-22T03:30:04.118Z',
        host: 'spindle-1',
        roles: 'http,worker',
        part: 'program',
        isStart: false,
        version: API_VERSION,
        manifest: '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
        files: 1104,
        scripts: 22,
        differing: 1,
        differences: [{ path: 'dist/src/main.js', what: 'CHANGED' }],
      },
    ],
    page: 1,
    limit: 20,
    total: 12,
  },
});
