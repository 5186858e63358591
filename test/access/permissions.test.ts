import fc from 'fast-check'
import * as assert from 'uvu/assert'
import type { Permissions } from '../../src/events/org.ts'
import { bothAllow, commonOf, compilePermissions } from '../../src/access/permissions.ts'
import { cpuOf } from '../support/cpuOf.ts'
import { randomOf, SEED } from '../support/randomOf.ts'
import { suite } from '../support/suite.ts'

type Ask = readonly [type: string, action: string, path?: string]

const permissions = suite('a permission map')
for (const [says, map, allowed, refused] of [
  [
    'grants everything',
    { '*:*': ['*'] },
    [
      ['run', 'read'],
      ['project', 'delete', 'shop'],
      ['file', 'create', 'a/b'],
    ],
    [],
  ],
  [
    'grants one action on everything',
    { '*:*': ['read'] },
    [
      ['run', 'read'],
      ['project', 'read', 'shop'],
    ],
    [
      ['project', 'delete', 'shop'],
      ['run', '*'],
    ],
  ],
  [
    'grants nothing',
    {},
    [],
    [
      ['run', 'read'],
      ['project', 'read', 'shop'],
    ],
  ],
  ['grants nothing by an empty list', { 'run:*': [] }, [], [['run', 'read']]],
  [
    'grants an action on a type',
    { 'project:*': ['read'] },
    [
      ['project', 'read'],
      ['project', 'read', 'shop'],
    ],
    [
      ['project', 'update', 'shop'],
      ['build', 'read', 'shop'],
    ],
  ],
  [
    'grants an action on a path',
    { 'project:shop': ['read'] },
    [['project', 'read', 'shop']],
    [
      ['project', 'read', 'store'],
      ['project', 'read'],
      ['project', 'read', 'sho'],
    ],
  ],
  [
    'grants every action of a path',
    { 'webhook:stripe': ['*'] },
    [['webhook', 'execute', 'stripe']],
    [
      ['webhook', 'execute', 'github'],
      ['mcp', 'execute', 'stripe'],
    ],
  ],
  [
    'adds up',
    { 'event:a': ['create'], 'event:*': ['read'] },
    [
      ['event', 'create', 'a'],
      ['event', 'read', 'b'],
    ],
    [['event', 'create', 'b']],
  ],
  [
    'takes paths with colons and stars as they are',
    { 'event:order:*': ['create'] },
    [['event', 'create', 'order:*']],
    [['event', 'create', 'order:paid']],
  ],
  [
    'is not fooled by names of Object',
    { 'run:*': ['read'] },
    [],
    [
      ['constructor', 'read'],
      ['run', 'constructor'],
      ['__proto__', '*'],
    ],
  ],
] as const satisfies readonly (readonly [string, Permissions, readonly Ask[], readonly Ask[]])[]) {
  permissions(says, () => {
    const { allows } = compilePermissions(map)
    for (const ask of allowed) assert.ok(allows(...(ask as Ask)), `${ask.join(' ')} is granted`)
    for (const ask of refused) assert.not.ok(allows(...(ask as Ask)), `${ask.join(' ')} is not granted`)
  })
}
permissions.run()

const common = suite('what two permission maps have in common')

common(`is what both of them grant (seed ${SEED})`, () => {
  const random = randomOf(SEED)
  const oneOf = <T>(all: readonly T[]): T => all[random(all.length)] as T
  const TYPES = ['run', 'event', '*'] as const
  const PATHS = ['*', 'a', 'b:*'] as const
  const ACTIONS = ['read', 'create', '*'] as const
  const anyMap = (): Permissions =>
    Object.fromEntries(
      Array.from({ length: random(4) }, () => {
        const type = oneOf(TYPES)
        return [`${type}:${type === '*' ? '*' : oneOf(PATHS)}`, [oneOf(ACTIONS), oneOf(ACTIONS)]]
      }),
    )
  for (let times = 0; times < 2000; times++) {
    const [one, other] = [anyMap(), anyMap()]
    const expected = bothAllow(compilePermissions(one), compilePermissions(other))
    const map = commonOf(one, other)
    const found = compilePermissions(map)
    for (const type of ['run', 'event', 'file'])
      for (const action of ['read', 'create', 'delete'])
        for (const path of [undefined, 'a', 'b:*', 'c'])
          assert.is(
            found.allows(type, action, path),
            expected.allows(type, action, path),
            JSON.stringify({ one, other, map, type, action, path }),
          )
  }
})

/** Compares each entry of a map with each of the other. */
const comparedOf = (one: Permissions, other: Permissions): Permissions => {
  const narrower = (a: string, b: string) => (a === '*' ? b : b === '*' || a === b ? a : undefined)
  const common = new Map<string, Set<string>>()
  for (const [left, leftActions] of Object.entries(one))
    for (const [right, rightActions] of Object.entries(other)) {
      const [leftType = '', leftPath = ''] = left.split(/:(.*)/s)
      const [rightType = '', rightPath = ''] = right.split(/:(.*)/s)
      const [type, path] = [narrower(leftType, rightType), narrower(leftPath, rightPath)]
      const actions = leftActions.flatMap((a) => rightActions.flatMap((b) => narrower(a, b) ?? []))
      if (type === undefined || path === undefined || actions.length === 0) continue
      const resource = `${type}:${path}`
      common.set(resource, new Set([...(common.get(resource) ?? []), ...actions]))
    }
  return Object.fromEntries([...common].map(([resource, actions]) => [resource, [...actions]]))
}

common('is what the comparison of each entry with each of the other finds, in its order', () => {
  const resource = fc
    .tuple(fc.constantFrom('run', 'event', '*'), fc.constantFrom('*', 'a', 'a:b', 'b:*', '__proto__'))
    .map((parts) => parts.join(':'))
  const actions = fc.array(fc.constantFrom('read', 'create', '*'), { maxLength: 4 })
  const map = fc.dictionary(resource, actions, { maxKeys: 8 })
  fc.assert(
    fc.property(map, map, (one, other) => {
      assert.is(JSON.stringify(commonOf(one, other)), JSON.stringify(comparedOf(one, other)))
    }),
    { seed: SEED, numRuns: 3000 },
  )
})

const entriesOf = (many: number, actions: readonly string[]): Permissions =>
  Object.fromEntries(Array.from({ length: many }, (_, n) => [`run:${n}`, actions]))

common('takes a time in proportion to the entries', () => {
  const [few, many] = [entriesOf(500, ['read']), entriesOf(5000, ['read'])]
  const [one, ten] = [cpuOf(() => commonOf(few, few)), cpuOf(() => commonOf(many, many))]
  assert.ok(ten < 40 * one, `${ten} ms for ten times the entries of ${one} ms`)
})

common('takes a time in proportion to the actions, which may be the same ones', () => {
  const actionsOf = (many: number): Permissions => ({ 'run:*': Array.from({ length: many }, () => 'read') })
  const [few, many] = [actionsOf(300), actionsOf(3000)]
  const [one, ten] = [cpuOf(() => commonOf(few, few)), cpuOf(() => commonOf(many, many))]
  assert.ok(ten < 40 * one, `${ten} ms for ten times the actions of ${one} ms`)
})

common.run()
