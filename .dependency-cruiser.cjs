/** The import rules of ARCHITECTURE.md. */
module.exports = {
  forbidden: [
    { name: 'no-cycles', severity: 'error', from: {}, to: { circular: true } },
    {
      name: 'domain-is-alone',
      comment: 'src/domain is pure: it imports nothing of the project outside itself',
      severity: 'error',
      from: { path: '^src/domain/' },
      to: { path: '^(src/(?!domain/)|workers/|bench/)' },
    },
    {
      name: 'domain-does-no-io',
      comment: 'node:crypto is there for hashes and ciphers only; a test looks that randomness is not drawn',
      severity: 'error',
      from: { path: '^src/domain/' },
      to: { dependencyTypes: ['core'], pathNot: '^(node:)?(crypto|buffer|os)$' },
    },
    {
      name: 'client-is-alone',
      comment: 'src/client knows the service by its contract only, and the service never calls itself',
      severity: 'error',
      from: { path: '^src/client/' },
      to: { path: '^(src/(?!client/)|workers/|bench/)' },
    },
    {
      name: 'client-is-for-commands',
      severity: 'error',
      from: { path: '^(src|workers)/', pathNot: '^src/(client/|cli/|cli\\.ts$)' },
      to: { path: '^src/client/' },
    },
    {
      name: 'one-http-server',
      severity: 'error',
      from: { path: '^(src|workers)/', pathNot: '^src/http/server\\.ts$' },
      to: { path: 'node_modules/(uWebSockets\\.js|uws-pack)' },
    },
    {
      name: 'redis-client-in-one-place',
      severity: 'error',
      from: { path: '^(src|workers)/', pathNot: '^src/redis/' },
      to: { path: 'node_modules/ioredis' },
    },
    {
      name: 'redis-connections-stay-in-redis',
      comment: 'others call RedisNodes, RedisNode and CellStore; tests open raw connections of ioredis',
      severity: 'error',
      from: { pathNot: '^src/redis/' },
      to: { path: '^src/redis/client\\.ts$' },
    },
    {
      name: 'postgres-client-in-one-place',
      severity: 'error',
      from: { path: '^(src|workers)/', pathNot: '^src/(postgres|embedded)/' },
      to: { path: 'node_modules/(postgres|pg|node-pg-migrate)/' },
    },
    {
      name: 'http-holds-no-client',
      comment: "http calls typed functions: the stores' clients are not for it",
      severity: 'error',
      from: { path: '^src/http/' },
      to: { path: '^src/postgres/client\\.ts$', dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'stores-do-not-know-each-other',
      severity: 'error',
      from: { path: '^src/(redis|postgres)/' },
      to: { path: '^src/(redis|postgres)/', pathNot: '^src/$1/' },
    },
    {
      name: 'stores-know-no-one-above',
      severity: 'error',
      from: { path: '^src/(redis|postgres|embedded)/' },
      to: {
        path: '^src/(http|ledger|blocks|cells|catalog|recovery|settlement|roles|main|demo|metrics|config)',
      },
    },
    {
      name: 'settlement-knows-stores-and-domain',
      severity: 'error',
      from: { path: '^src/settlement/' },
      to: { path: '^src/(?!settlement/|domain/|postgres/|redis/|runtime/|events)' },
    },
    {
      name: 'http-knows-no-worker',
      severity: 'error',
      from: { path: '^src/http/' },
      to: { path: '^src/(ledger|blocks|recovery|roles|embedded|main|config)' },
    },
    {
      name: 'workers-see-the-domain-only',
      severity: 'error',
      from: { path: '^workers/' },
      to: { path: '^src/(?!domain/)' },
    },
    {
      name: 'main-is-the-top',
      severity: 'error',
      from: { path: '^(src|workers)/' },
      to: { path: '^src/main\\.ts$' },
    },
    {
      name: 'config-is-handed-on',
      comment: 'config.ts is read in program/, and main.ts hands on what each part needs',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/(main|cli|stores|(program|roles)/.*)\\.ts$' },
      to: { path: '^src/config\\.ts$' },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'types', 'node', 'default'],
    },
  },
};
