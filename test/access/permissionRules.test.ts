import fc from 'fast-check'
import * as assert from 'uvu/assert'
import { isAppError } from '../../src/errors.ts'
import type { Permissions } from '../../src/events/org.ts'
import {
  checkPermissions,
  checkServiceKeyPermissions,
  compilePermissions,
} from '../../src/access/permissions.ts'
import { suite } from '../support/suite.ts'

const messageOf = (check: () => void): string => {
  try {
    check()
  } catch (error) {
    if (isAppError(error, 'bad_request')) return error.message
    throw error
  }
  return 'accepted'
}

const table = suite('the validation of permissions (SPEC.md, Permission map)')
for (const [rule, resource, actions, message] of [
  ['Resource must be type:path', 'project', ['read'], 'Invalid resource'],
  ['Resource key not empty', '', ['read'], 'Invalid resource'],
  ['Type not empty', ':shop', ['read'], 'Invalid resource'],
  ['Path not empty', 'project:', ['read'], 'Invalid resource'],
  ['Bare * is invalid', '*', ['*'], 'Invalid resource'],
  ['Type * allows only path *', '*:shop', ['*'], 'Invalid resource'],
  ['Type is alphanumeric or hyphens', 'pro_ject:*', ['read'], 'Invalid resource'],
  ['Type is alphanumeric or hyphens: a space', 'pro ject:*', ['read'], 'Invalid resource'],
  ['Type is alphanumeric or hyphens: a star', 'pro*:x', ['read'], 'Invalid resource'],
  ['Resource is no name of Object', '__proto__', ['read'], 'Invalid resource'],
  ['Action list not empty', 'project:*', [], 'Empty action list'],
  ['Actions lowercase', 'project:*', ['READ'], 'Invalid action'],
  ['Action in create, read, update, delete, execute, *', 'project:*', ['read', 'list'], 'Invalid action'],
  ['Action is not empty', 'project:*', [''], 'Invalid action'],
  ['Action valid for the type', 'mcp:*', ['create'], 'Action not valid for resource'],
  ['Action valid for the type, among others', 'run:*', ['read', 'delete'], 'Action not valid for resource'],
  ['Action valid for a type that there is not', 'constructor:*', ['*'], 'Action not valid for resource'],
  ['Types are lower-case', 'Project:*', ['read'], 'Action not valid for resource'],
  ['The universal grant is *:* with [*]', '*:*', ['read'], 'Action not valid for resource'],
] as const) {
  table(rule, () => {
    const map = Object.fromEntries([
      ['env:*', ['read']],
      [resource, [...actions]],
    ])
    assert.ok(messageOf(() => checkPermissions(map)).startsWith(`${message}: ${JSON.stringify(resource)}`))
  })
}

for (const [resource, action, message] of [
  ['run', 'read', 'Invalid resource: "run": expected type:path, such as "run:*"'],
  ['run:*', 'READ', 'Invalid action: "run:*" "READ": expected create, read, update, delete, execute or *'],
  ['mcp:*', 'create', 'Action not valid for resource: "mcp:*" "create": expected execute or *'],
  ['event:*', 'delete', 'Action not valid for resource: "event:*" "delete": expected create, read or *'],
  ['*:*', 'read', 'Action not valid for resource: "*:*" "read": expected *'],
  [
    'evnt:*',
    'read',
    'Action not valid for resource: "evnt:*" "read": expected the type mcp, webhook, stream, event, run, project, build, context, key, session, env, file, domain or *',
  ],
] as const)
  table(`names what is expected instead of ${resource} ${action}`, () =>
    assert.is(
      messageOf(() => checkPermissions({ [resource]: [action] })),
      message,
    ),
  )

/** SPEC.md, Permission map; `file` and `domain`: DESIGN.md, Permissions per endpoint. */
const ACTIONS: Record<string, string[]> = {
  mcp: ['execute'],
  webhook: ['execute'],
  stream: ['read'],
  event: ['create', 'read'],
  run: ['read'],
  project: ['create', 'read', 'update', 'delete'],
  build: ['create', 'read', 'execute'],
  context: ['create', 'read', 'update', 'delete'],
  key: ['create', 'read', 'update', 'delete'],
  session: ['create', 'read', 'delete'],
  env: ['read'],
  file: ['create', 'read', 'update', 'delete'],
  domain: ['create', 'read', 'delete'],
}
for (const [type, valid] of Object.entries(ACTIONS)) {
  table(`gives ${type} the actions ${valid.join(', ')} and *`, () => {
    for (const action of ['create', 'read', 'update', 'delete', 'execute']) {
      const outcome = messageOf(() => checkPermissions({ [`${type}:a:b/c*`]: [action] }))
      assert.is(outcome === 'accepted', valid.includes(action), `${type} ${action}: ${outcome}`)
    }
    checkPermissions({ [`${type}:*`]: ['*'], [`${type}:x`]: ['*', valid[0] ?? ''] })
  })
}
table('accepts the universal grant, and nothing at all', () => {
  checkPermissions({ '*:*': ['*'] })
  checkPermissions({})
})
for (const type of [...Object.keys(ACTIONS), '*']) {
  const allowed = ['mcp', 'webhook', 'stream', 'event', 'run'].includes(type)
  table(`${allowed ? 'lets' : 'does not let'} a service key have ${type}`, () => {
    const outcome = messageOf(() => checkServiceKeyPermissions({ [`${type}:*`]: ['*'] }))
    assert.is(outcome === 'accepted', allowed, outcome)
    if (!allowed) assert.match(outcome, `"${type}:*"`)
  })
}
table.run()

/** An action of a type on a path. `later` is a type that does not exist yet. */
interface Request {
  readonly type: string
  readonly action: string
  readonly path: string
}
const PATHS = ['a', 'b', 'a:b', '*']
const requests: readonly Request[] = Object.entries({ ...ACTIONS, later: ['read', 'grow'] }).flatMap(
  ([type, actions]) =>
    actions.flatMap((action) => [...PATHS, 'elsewhere'].map((path) => ({ type, action, path }))),
)

/** The rule of SPEC.md, word by word and without any shortcut. */
const may = (map: Permissions, { type, action, path }: Request): boolean =>
  Object.entries(map).some(([resource, actions]) => {
    const colon = resource.indexOf(':')
    const [ofType, ofPath] = [resource.slice(0, colon), resource.slice(colon + 1)]
    return (
      (ofType === '*' || ofType === type) &&
      (ofPath === '*' || ofPath === path) &&
      actions.some((granted) => granted === '*' || granted === action)
    )
  })

const entry = fc
  .oneof(
    { weight: 12, arbitrary: fc.constantFrom(...Object.keys(ACTIONS).slice(0, 7)) },
    { weight: 1, arbitrary: fc.constant('*') },
  )
  .chain((type) =>
    fc.tuple(
      type === '*' ? fc.constant('*:*') : fc.constantFrom(...PATHS).map((path) => `${type}:${path}`),
      type === '*'
        ? fc.constant<string[]>(['*'])
        : fc.uniqueArray(fc.constantFrom('*', ...(ACTIONS[type] ?? [])), { minLength: 1 }),
    ),
  )
const map = fc.array(entry, { maxLength: 6 }).map((entries): Permissions => Object.fromEntries(entries))
/** Often a part of the parent, else hardly any pair would be a subset. */
const pair = fc
  .tuple(map, map, fc.array(fc.boolean(), { minLength: 8, maxLength: 8 }))
  .map(([parent, other, kept]): [Permissions, Permissions] => [
    parent,
    Object.fromEntries([
      ...Object.entries(parent).filter((_, index) => kept[index]),
      ...Object.entries(other)
        .filter((_, index) => kept[index + 2])
        .slice(0, 1),
    ]),
  ])

const subset = suite('a map within another')
subset('lets the child do nothing that the parent may not, and refuses only for a reason', () => {
  let within = 0
  fc.assert(
    fc.property(pair, ([parent, child]) => {
      const witness = requests.find((request) => may(child, request) && !may(parent, request))
      const beyond = compilePermissions(parent).beyond(child)
      if (beyond === undefined) within++
      assert.is(beyond === undefined, witness === undefined, JSON.stringify({ beyond, witness }))
      if (beyond !== undefined) {
        const part = { [beyond]: child[beyond] ?? [] }
        assert.ok(requests.some((request) => may(part, request) && !may(parent, request)))
      }
    }),
    { numRuns: 5000 },
  )
  assert.ok(within > 500, `only ${within} of the pairs were subsets`)
})
subset('is decided by what the map allows', () => {
  fc.assert(
    fc.property(map, (permissions) => {
      const { allows } = compilePermissions(permissions)
      for (const request of requests)
        assert.is(allows(request.type, request.action, request.path), may(permissions, request))
    }),
    { numRuns: 2000 },
  )
})
subset('is transitive, and every map is within itself', () => {
  fc.assert(
    fc.property(map, map, map, (a, b, c) => {
      const within = (child: Permissions, parent: Permissions) =>
        compilePermissions(parent).beyond(child) === undefined
      assert.ok(within(a, a))
      if (within(a, b) && within(b, c)) assert.ok(within(a, c))
    }),
    { numRuns: 5000 },
  )
})
subset('counts every entry of the parent together', () => {
  const parent = compilePermissions({ 'event:*': ['read'], 'event:a': ['create'] })
  assert.is(parent.beyond({ 'event:a': ['create', 'read'] }), undefined)
  assert.is(parent.beyond({ 'event:a': ['*'] }), undefined)
  assert.is(parent.beyond({ 'event:b': ['create'] }), 'event:b')
  assert.is(parent.beyond({ 'event:*': ['create'] }), 'event:*')
})
subset('of everything is only everything: types that come later count', () => {
  const all: Permissions = {}
  for (const type of Object.keys(ACTIONS)) all[`${type}:*`] = ['*']
  assert.is(compilePermissions(all).beyond({ '*:*': ['*'] }), '*:*')
  assert.is(compilePermissions({ '*:*': ['*'] }).beyond(all), undefined)
})
subset.run()
