/**
 * The layers of src, from the bottom to the top, and all that each may import: a layer listed before it, or a
 * package. `npm run lint:rules` generates the lint rules from this table; `imports.test.ts` checks every file.
 */
export interface Layer {
  /** A folder or file under src, without its ending. A path inside another layer's is a layer of its own. */
  readonly path: string
  readonly imports: readonly string[]
  /** What it may import types from, but no values. */
  readonly types?: readonly string[]
  /** Packages from npm; `node:sqlite` counts as one, the other modules of Node are free. */
  readonly packages?: readonly string[]
}

/** What every layer of the service may use. */
const kernel = ['clock', 'errors', 'ids', 'boundedMap', 'logger'] as const
const facts = [...kernel, 'events', 'events/streams', 'ports'] as const

/** An adapter knows the port that it implements and the packages of its engine, and no other adapter. */
const adapter = (path: string, ...packages: readonly string[]): Layer => ({
  path: `adapters/${path}`,
  imports: [...kernel, 'loops', 'events', 'events/streams', 'ports', 'adapters/shared'],
  packages,
})

export const layers: readonly Layer[] = [
  { path: 'clock', imports: [] },
  { path: 'errors', imports: [] },
  { path: 'boundedMap', imports: [] },
  { path: 'ids', imports: ['clock'] },
  { path: 'logger', imports: ['clock'] },

  { path: 'events/streams', imports: [] },
  { path: 'events/jsonDepth', imports: [] },
  { path: 'events/outputLimit', imports: [] },
  {
    path: 'events',
    imports: ['errors', 'events/streams', 'events/jsonDepth', 'events/outputLimit'],
    packages: ['typebox'],
  },
  // The SDK is published: its types and its code are its own.
  { path: 'sdk', imports: [] },
  { path: 'ports', imports: ['events'], types: ['sdk'] },
  { path: 'loops', imports: [...kernel], types: ['ports'] },

  { path: 'adapters/shared', imports: [...kernel, 'events', 'ports'] },
  adapter('embedded', 'node:sqlite'),
  adapter('eventstoredb', '@eventstore/db-client', '@grpc/grpc-js', 'google-protobuf'),
  adapter('mongodb', 'mongodb'),
  adapter('redis', 'ioredis'),
  adapter('s3', '@bradenmacdonald/s3-lite-client'),
  adapter('system'),

  { path: 'access', imports: ['errors'], types: ['events'] },
  { path: 'domain/cron', imports: [], packages: ['croner'] },
  { path: 'domain', imports: [...facts, 'loops', 'domain/cron'] },
  { path: 'content', imports: [...facts, 'loops', 'domain'] },
  { path: 'secrets', imports: [...facts, 'loops', 'access', 'domain'] },
  { path: 'projections', imports: [...kernel, 'loops', 'events', 'ports'], types: ['content'] },
  { path: 'plans', imports: [...kernel, 'loops', 'events', 'ports', 'projections'], types: ['content'] },
  { path: 'cluster', imports: [...kernel, 'loops', 'events', 'ports', 'projections'] },

  // `child` shares its process with user code: of the service it may contain the protocol alone.
  { path: 'sandbox/frames', imports: ['events/jsonDepth'] },
  { path: 'sandbox/protocol', imports: ['sandbox/frames', 'sdk', 'events/jsonDepth'], types: ['events'] },
  {
    path: 'sandbox/child',
    imports: ['sandbox/frames', 'sdk', 'events/jsonDepth', 'events/outputLimit'],
    types: ['sandbox/protocol', 'events'],
  },
  {
    path: 'sandbox',
    imports: [...kernel, 'loops', 'events', 'events/jsonDepth', 'events/outputLimit', 'ports', 'sdk'].concat(
      'sandbox/frames',
      'sandbox/protocol',
    ),
  },
  {
    path: 'builds',
    imports: [...kernel, 'loops', 'events', 'ports', 'domain/cron', 'sandbox', 'sandbox/protocol'],
    packages: ['yauzl'],
  },

  // The operations of the service. Everything above only translates into them.
  {
    path: 'commands',
    imports: [...facts, 'loops', 'access', 'domain', 'content', 'secrets', 'projections', 'plans'],
  },
  {
    path: 'sagas',
    imports: [...facts, 'loops', 'domain/cron', 'domain', 'content', 'projections', 'plans', 'commands'],
    packages: ['node-schedule'],
  },
  {
    path: 'worker/serveFileCall',
    imports: [...kernel, 'events', 'ports', 'content', 'commands'],
  },
  {
    path: 'worker/serveHostCall',
    imports: [...kernel, 'events', 'ports', 'secrets', 'commands', 'worker/serveFileCall'],
  },
  {
    path: 'worker',
    imports: [...facts, 'loops', 'events/outputLimit', 'domain', 'content', 'secrets', 'projections'].concat([
      'plans',
      'commands',
      'worker/serveHostCall',
    ]),
  },
  {
    path: 'api',
    imports: [
      ...kernel,
      'loops',
      'events',
      'events/jsonDepth',
      'ports',
      'access',
      'content',
      'secrets',
    ].concat(
      ['projections', 'plans', 'commands'],
      ['domain', 'events/streams', 'builds', 'sagas'], // until the operations in routes are commands
    ),
    packages: ['koa', '@koa/router', 'koa-body', 'typebox'],
  },

  // The process: the only layer that knows more than one role, and `engines` the only file that knows adapters.
  { path: 'process/codeCache', imports: [] },
  { path: 'process/config', imports: ['errors', 'ports', 'access'] },
  {
    path: 'process/engines',
    imports: [...kernel, 'loops', 'ports', 'process/config'].concat(
      ['embedded', 'eventstoredb', 'mongodb', 'redis', 's3', 'system'].map((name) => `adapters/${name}`),
    ),
  },
  {
    path: 'process',
    imports: [...facts, 'loops', 'access', 'domain', 'content', 'secrets', 'projections', 'plans'].concat([
      'cluster',
      'builds',
      'commands',
      'sagas',
      'worker',
      'api',
      'process/config',
      'process/engines',
    ]),
    packages: ['koa'],
  },
  {
    path: 'start',
    imports: [...facts, 'loops', 'domain', 'content', 'secrets', 'projections', 'plans', 'cluster'].concat([
      'builds',
      'commands',
      'api',
      'process/config',
      'process/engines',
      'process',
    ]),
  },
  { path: 'main', imports: ['errors', 'logger', 'process/config', 'process/codeCache', 'start'] },
  // Loads what a server loads, so that the code cache holds it.
  {
    path: 'process/prepare',
    imports: ['main', 'sandbox', 'process/codeCache'],
    packages: ['koa-body'],
  },
]
