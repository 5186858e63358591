/**
 * The layers of src, from the bottom to the top, and all that each may import: a layer listed before it, or a
 * package. `npm run lint:rules` generates the lint rules from this table; `imports.test.ts` checks every file.
 */
export interface Layer {
  /** A folder or file under src, without its ending. A path inside another layer's is a layer of its own. */
  readonly path: string
  readonly imports: readonly string[]
  /** Layers from which it may import types, but no values. */
  readonly types?: readonly string[]
  /** Packages from npm; `node:sqlite` counts as one, the other modules of Node are free. */
  readonly packages?: readonly string[]
}

/** The files that every layer of the service may use. */
const kernel = ['clock', 'errors', 'ids', 'boundedMap', 'disk', 'logger'] as const
const facts = [...kernel, 'loops', 'events', 'events/rawJson', 'ports'] as const

/** An adapter knows the port that it implements and the packages of its engine, and no other adapter. */
const adapter = (path: string, ...packages: readonly string[]): Layer => ({
  path: `adapters/${path}`,
  imports: [...facts, 'adapters/shared'],
  packages,
})

export const layers: readonly Layer[] = [
  { path: 'clock', imports: [] },
  { path: 'errors', imports: [] },
  { path: 'boundedMap', imports: [] },
  { path: 'disk', imports: ['boundedMap'] },
  { path: 'ids', imports: ['clock'] },
  { path: 'events/mask', imports: [] },
  { path: 'secrets/redaction', imports: ['events/mask'] },
  { path: 'logger', imports: ['clock', 'secrets/redaction'], packages: ['pino'] },

  // Names of streams are for the layers that append: `api` and the host calls have no business there.
  { path: 'events/streams', imports: [] },
  { path: 'events/jsonDepth', imports: [] },
  { path: 'events/rawJson', imports: [] },
  { path: 'events/outputLimit', imports: [] },
  { path: 'events/contextKey', imports: ['errors'] },
  { path: 'events/idempotencyKey', imports: ['errors'] },
  { path: 'events', imports: ['errors'], packages: ['typebox'] },
  { path: 'events/failedRun', imports: ['errors'], types: ['events'] },
  // The SDK is published: its types and its code are its own.
  { path: 'sdk', imports: [] },
  // The client is published too, also for browsers.
  { path: 'client', imports: [], types: ['sdk'] },
  { path: 'ports', imports: ['events'], types: ['sdk'] },
  { path: 'loops/byteChunks', imports: [] },
  { path: 'loops', imports: [...kernel], types: ['ports'] },

  { path: 'adapters/shared', imports: [...kernel, 'loops', 'events', 'ports'] },
  adapter('embedded', 'node:sqlite'),
  adapter('eventstoredb', '@eventstore/db-client', '@grpc/grpc-js', 'google-protobuf'),
  adapter('mongodb', 'mongodb'),
  adapter('prometheus', 'prom-client'),
  adapter(
    'otlp',
    '@opentelemetry/api',
    '@opentelemetry/exporter-trace-otlp-http',
    '@opentelemetry/resources',
    '@opentelemetry/sdk-trace',
  ),
  adapter('redis', 'ioredis'),
  adapter('s3', '@bradenmacdonald/s3-lite-client'),
  adapter('system'),
  adapter('acme', 'acme-client'),

  { path: 'domain/cron', imports: ['boundedMap'], packages: ['croner'] },
  { path: 'domain/functionChanges', imports: [], types: ['events'] },
  { path: 'domain', imports: [...facts, 'events/idempotencyKey'] },
  { path: 'content', imports: [...facts] },
  { path: 'access/permissions', imports: ['errors'], types: ['events'] },
  { path: 'access/tokens', imports: [] },
  {
    path: 'secrets',
    imports: [...facts, 'events/mask', 'events/streams', 'access/tokens'],
    types: ['domain'],
  },
  { path: 'projections', imports: [...facts], types: ['content'] },
  { path: 'plans', imports: [...facts], types: ['content', 'projections'] },
  {
    path: 'access',
    imports: [...facts, 'projections', 'access/permissions', 'access/tokens'],
    types: ['secrets'],
  },
  { path: 'cluster', imports: [...facts, 'projections'] },

  { path: 'nameserver', imports: [...kernel] },

  // `child` shares its process with user code: of the service it may contain the protocol alone.
  { path: 'sandbox/frames', imports: ['loops/byteChunks', 'events/jsonDepth', 'events/rawJson'] },
  { path: 'egress/frames', imports: [] },
  { path: 'egress/hosts', imports: [] },
  { path: 'egress/operatorAllow', imports: ['egress/hosts'], types: ['egress/frames'] },
  {
    path: 'egress',
    imports: [...kernel, 'sandbox/frames', 'egress/frames', 'egress/hosts', 'egress/operatorAllow'],
    types: ['ports'],
  },
  {
    path: 'sandbox/errorDetails',
    imports: ['loops', 'sandbox/frames', 'events/rawJson'],
    types: ['events'],
  },
  {
    path: 'sandbox/protocol',
    imports: ['sandbox/frames', 'sandbox/errorDetails', 'events/rawJson', 'sdk'],
    types: ['events'],
  },
  { path: 'sandbox/namespaces', imports: [] },
  { path: 'sandbox/nearestName', imports: [] },
  { path: 'sandbox/likelyFile', imports: ['sandbox/nearestName'] },
  { path: 'sandbox/toJavaScript', imports: [] },
  {
    path: 'sandbox/child',
    imports: [
      'sandbox/frames',
      'sandbox/likelyFile',
      'sandbox/namespaces',
      'sandbox/nearestName',
      'egress/frames',
      'sdk',
      'events/mask',
      'events/outputLimit',
    ],
    types: ['sandbox/protocol', 'events'],
  },
  {
    path: 'sandbox',
    imports: [
      ...kernel,
      'loops',
      'events/rawJson',
      'events/failedRun',
      'events/mask',
      'events/outputLimit',
      'sandbox/frames',
      'sandbox/protocol',
      'sandbox/toJavaScript',
    ],
    types: ['events', 'ports', 'sdk'],
  },
  {
    path: 'builds',
    imports: [
      ...kernel,
      'loops',
      'ports',
      'events',
      'events/contextKey',
      'domain/cron',
      'sandbox',
      'sandbox/namespaces',
      'sandbox/nearestName',
    ],
    types: ['sandbox/protocol'],
    packages: ['yauzl'],
  },

  // The sources of a user's project as a build. Authors run it on their machines; the service never does.
  {
    path: 'bundle',
    imports: [
      'errors',
      'logger',
      'builds',
      'sandbox',
      'sandbox/likelyFile',
      'sandbox/namespaces',
      'sandbox/nearestName',
    ],
    types: ['events'],
    packages: ['esbuild', 'cjs-module-lexer'],
  },

  // This package as a tarball.
  { path: 'package', imports: ['errors', 'sandbox/toJavaScript'], packages: ['esbuild'] },

  // A backup as a directory, which is read and written without the service.
  { path: 'backup/rowFrames', imports: ['errors'] },
  { path: 'backup', imports: [...kernel, 'backup/rowFrames'], types: ['ports'] },

  // The operations of the service. Everything above only translates into them.
  {
    path: 'commands',
    imports: [
      ...facts,
      'events/streams',
      'events/contextKey',
      'events/failedRun',
      'access/permissions',
      'access/tokens',
      'domain',
      'domain/functionChanges',
      'content',
      'secrets',
      'projections',
      'plans',
      'egress/hosts',
      'backup/rowFrames',
      'domain/cron',
      'events/jsonDepth',
    ],
    types: ['access', 'backup'],
  },
  {
    path: 'sagas',
    imports: [...facts, 'domain/cron', 'projections', 'plans', 'commands'],
    packages: ['node-schedule'],
  },
  {
    path: 'worker/runRights',
    imports: ['errors', 'access/permissions'],
    types: ['access', 'events', 'projections'],
  },
  { path: 'worker/fileParams', imports: ['errors', 'ids', 'content', 'sdk'] },
  {
    path: 'worker/serveFileCall',
    imports: [
      ...kernel,
      'events',
      'ports',
      'sdk',
      'content',
      'commands',
      'worker/runRights',
      'worker/fileParams',
    ],
  },
  {
    path: 'worker/keptPayloads',
    imports: [...kernel, 'events/rawJson'],
    types: ['events', 'content'],
  },
  {
    path: 'worker/startOnce',
    imports: ['ids', 'events/idempotencyKey', 'events/rawJson', 'commands'],
    types: ['events', 'ports'],
  },
  {
    path: 'worker/serveHostCall',
    imports: [
      ...kernel,
      'events/contextKey',
      'commands',
      'worker/runRights',
      'worker/keptPayloads',
      'worker/startOnce',
      'worker/serveFileCall',
    ],
    types: ['events', 'ports', 'plans'],
  },
  {
    path: 'worker',
    imports: [
      ...facts,
      'events/streams',
      'events/outputLimit',
      'secrets',
      'projections',
      'commands',
      'worker/runRights',
      'worker/serveHostCall',
      'worker/keptPayloads',
    ],
    types: ['access', 'domain', 'content', 'plans'],
  },
  {
    path: 'api',
    imports: [
      ...facts,
      'events/contextKey',
      'events/idempotencyKey',
      'events/mask',
      'sdk',
      'loops/byteChunks',
      'events/jsonDepth',
      'access/permissions',
      'access/tokens',
      'access',
      'content',
      'secrets',
      'projections',
      'plans',
      'package',
      'commands',
    ],
    packages: ['koa', '@koa/router', 'koa-body', 'typebox'],
  },

  // The process: the only layer that knows more than one role, and `engines` the only file that knows adapters.
  { path: 'process/codeCache', imports: [] },
  { path: 'process/noCoreDumps', imports: [] },
  { path: 'process/output', imports: ['clock'] },
  { path: 'process/variables', imports: ['ports', 'sandbox/nearestName'] },
  {
    path: 'process/config',
    imports: [
      'errors',
      'logger',
      'ports',
      'access/tokens',
      'sandbox',
      'egress/operatorAllow',
      'process/variables',
    ],
  },
  {
    path: 'process/secretsFile',
    imports: ['disk', 'errors', 'ids', 'access/tokens', 'process/variables', 'process/config'],
  },
  {
    path: 'process/engines',
    imports: [
      ...kernel,
      'loops',
      'ports',
      'process/config',
      'adapters/embedded',
      'adapters/eventstoredb',
      'adapters/mongodb',
      'adapters/otlp',
      'adapters/prometheus',
      'adapters/redis',
      'adapters/s3',
      'adapters/system',
      'adapters/acme',
    ],
  },
  // What an operator can fix. The command line uses it too, when the service does not run.
  { path: 'process/checks/check', imports: ['errors', 'loops'] },
  { path: 'process/checks/clock', imports: ['process/checks/check'], types: ['ports'] },
  {
    path: 'process/checks',
    imports: [
      ...kernel,
      'loops',
      'ports',
      'process/config',
      'process/secretsFile',
      'process/engines',
      'secrets',
      'process/checks/check',
      'process/checks/clock',
    ],
  },
  {
    path: 'process',
    imports: [
      ...kernel,
      'loops',
      'ports',
      'access',
      'access/tokens',
      'domain',
      'content',
      'secrets',
      'projections',
      'plans',
      'cluster',
      'sandbox',
      'commands',
      'sagas',
      'egress',
      'egress/hosts',
      'worker',
      'nameserver',
      'api',
      'process/variables',
      'process/config',
      'process/secretsFile',
      'process/engines',
      'process/checks/check',
      'process/checks',
    ],
    packages: ['koa'],
  },
  {
    path: 'start',
    imports: [
      ...kernel,
      'loops',
      'builds',
      'api',
      'process/config',
      'process/secretsFile',
      'process/engines',
      'process/checks',
      'process',
    ],
  },
  { path: 'process/lockBackup', imports: ['errors', 'backup', 'process/engines'] },
  { path: 'process/ephemeralDir', imports: ['process/engines'] },
  {
    path: 'process/restoreDataDir',
    imports: [...kernel, 'backup', 'secrets', 'process/engines', 'process/secretsFile', 'process'],
    types: ['ports'],
  },
  {
    path: 'process/restoreEngines',
    imports: [...kernel, 'backup', 'commands', 'process/config', 'process/engines', 'process/restoreDataDir'],
    types: ['ports'],
  },
  { path: 'cli/uploadBuild', imports: [], types: ['client'] },
  {
    path: 'cli/deployBundle',
    imports: ['bundle', 'client', 'cli/uploadBuild'],
    types: ['events'],
  },
  // The test kit: the code of a child and the checks of the service, in the process of a test.
  {
    path: 'testkit',
    imports: [
      'clock',
      'errors',
      'ids',
      'events',
      'events/contextKey',
      'events/failedRun',
      'events/idempotencyKey',
      'events/outputLimit',
      'sdk',
      'domain',
      'content',
      'sandbox/frames',
      'sandbox/nearestName',
      'sandbox/protocol',
      'sandbox/child',
      'sandbox',
      'builds',
      'bundle',
      'client',
      'commands',
      'domain/cron',
      'logger',
      'process/config',
      'cli/deployBundle',
      'start',
      'worker/fileParams',
    ],
    types: ['process'],
  },

  // The dashboard: a client of the API, in a browser.
  {
    path: 'ui',
    imports: ['clock', 'client', 'access/permissions'],
    packages: ['preact', '@preact/signals', 'uplot'],
  },

  // The command line: a client of the operator API. The types of commands are the types of the replies.
  {
    path: 'cli',
    imports: [
      'boundedMap',
      'cli/uploadBuild',
      'cli/deployBundle',
      'bundle',
      'client',
      'domain/functionChanges',
      'clock',
      'disk',
      'errors',
      'ids',
      'logger',
      'sandbox/nearestName',
      'backup/rowFrames',
      'backup',
      'process/codeCache',
      'process/config',
      'process/secretsFile',
      'process/lockBackup',
      'process/ephemeralDir',
      'process/restoreDataDir',
      'process/restoreEngines',
      'process/checks/check',
      'process/checks/clock',
      'process',
    ],
    types: ['commands', 'projections', 'events'],
    packages: ['commander', 'string-width'],
  },
  {
    path: 'main',
    imports: [
      'errors',
      'secrets/redaction',
      'logger',
      'process/config',
      'process/codeCache',
      'process/noCoreDumps',
      'process/output',
      'start',
    ],
  },
  // Loads the modules of a server, so that the code cache contains them.
  {
    path: 'process/prepare',
    imports: ['errors', 'main', 'package', 'sandbox', 'process/codeCache'],
    packages: ['koa-body'],
  },
]
