import fc from 'fast-check'
import { refuse, type Subject } from '../subject.ts'
import { openCredentials } from './credentialsReal.ts'
import type { CredentialsCommand, Grants, Kind } from './credentialsSetup.ts'

interface State {
  keys: Record<string, { enabled: boolean; grants: Grants; deleted: boolean }>
  issued: Record<string, { key: string; kind: Kind; grants: Grants; revoked: boolean }>
}

const grants = fc.constantFrom<Grants>('full', 'runs', 'runs', 'projects', 'wrong')
const kind = fc.constantFrom<Kind>('session', 'service')
/** A place in the list of earlier commands, until `named` replaces it. */
const pick = fc.nat(99).map(String)
const own = fc.constant('')
const op = <const T extends string>(...values: T[]) => fc.constantFrom(...values)

/** API keys, and the sessions and service keys that they issue. */
export const credentials: Subject<State, CredentialsCommand> = {
  name: 'credentials',
  initial: { keys: { root: { enabled: true, grants: 'full', deleted: false } }, issued: {} },

  commands: fc.oneof(
    { weight: 3, arbitrary: fc.record({ op: op('createKey'), own, grants }) },
    { weight: 7, arbitrary: fc.record({ op: op('issue'), own, key: pick, kind, grants }) },
    {
      weight: 2,
      arbitrary: fc.record({
        op: op('changeKey'),
        id: pick,
        enabled: fc.constantFrom(true, true, false),
        grants: fc.option(grants, { nil: null }),
      }),
    },
    {
      weight: 8,
      arbitrary: fc.record({
        op: op('use', 'use', 'use', 'use', 'use', 'use', 'use', 'deleteKey'),
        id: pick,
      }),
    },
    { weight: 3, arbitrary: fc.record({ op: op('revoke'), key: pick, id: pick, kind }) },
    { weight: 1, arbitrary: fc.record({ op: op('revokeAll'), key: pick, kind }) },
  ),

  named(command, own, earlier) {
    const created = ['root', ...earlier.flatMap((one) => (one.op === 'createKey' ? [one.own] : []))]
    const issued = earlier.filter((one) => one.op === 'issue')
    const one = (names: readonly string[], place: string) => names[Number(place) % names.length] ?? 'none'
    switch (command.op) {
      case 'createKey':
        return { ...command, own }
      case 'issue':
        return { ...command, own, key: one(created, command.key) }
      case 'use':
        return { ...command, id: one([...created, ...issued.map(({ own }) => own)], command.id) }
      case 'revoke': {
        const { kind } = command
        const id = one(
          issued.filter((known) => known.kind === kind).map(({ own }) => own),
          command.id,
        )
        return { ...command, id, key: issued.find(({ own }) => own === id)?.key ?? one(created, command.key) }
      }
      case 'revokeAll':
        return { ...command, key: one(created, command.key) }
      default:
        return { ...command, id: one(created, command.id) }
    }
  },

  step({ keys, issued }, command) {
    switch (command.op) {
      case 'createKey':
        if (command.grants === 'wrong') refuse('bad_request')
        keys[command.own] = { enabled: true, grants: command.grants, deleted: false }
        return
      case 'changeKey': {
        if (command.grants === 'wrong') refuse('bad_request')
        const key = keys[command.id]
        if (!key || key.deleted) return refuse('not_found')
        Object.assign(key, { enabled: command.enabled, ...(command.grants && { grants: command.grants }) })
        return
      }
      case 'deleteKey': {
        const key = keys[command.id]
        if (!key || key.deleted) return refuse('not_found')
        key.deleted = true
        return
      }
      case 'use': {
        const one = issued[command.id]
        const key = keys[one?.key ?? command.id]
        if (!key?.enabled || key.deleted || one?.revoked) return refuse('unauthorized')
        const may = (right: Grants) =>
          [key.grants, one?.grants ?? 'full'].every((granted) => isWithin(right, granted))
        return { runs: may('runs'), projects: may('projects') }
      }
    }
    const key = keys[command.key]
    if (!key?.enabled || key.deleted) return refuse('unauthorized')
    switch (command.op) {
      case 'issue': {
        const { own, kind, grants } = command
        if (grants === 'wrong' || (kind === 'service' && grants !== 'runs')) refuse('bad_request')
        if (!isWithin(grants, key.grants)) refuse('permission_escalation')
        issued[own] = { key: command.key, kind, grants, revoked: false }
        return
      }
      case 'revoke': {
        const one = issued[command.id]
        if (one?.key !== command.key || one.kind !== command.kind) return refuse('not_found')
        if (one.revoked && one.kind === 'session') refuse('not_found')
        one.revoked = true
        return
      }
      case 'revokeAll': {
        const open = Object.values(issued).filter(
          (one) => one.key === command.key && one.kind === command.kind && !one.revoked,
        )
        for (const one of open) one.revoked = true
        return open.length
      }
      default:
        return command satisfies never
    }
  },

  /** What a deleted key issued is in no list. */
  view: ({ keys, issued }) => ({
    keys: Object.fromEntries(
      Object.entries(keys).flatMap(([name, { deleted, ...key }]) => (deleted ? [] : [[name, key]])),
    ),
    issued: Object.fromEntries(
      Object.entries(issued).flatMap(([name, { key, kind, grants, revoked }]) =>
        keys[key]?.deleted || (kind === 'session' && revoked) ? [] : [[name, { grants, revoked }]],
      ),
    ),
  }),

  repeats: ({ op }) => op === 'changeKey' || op === 'deleteKey',
  // The deletion of a key ends what the key issued, also before a request that was admitted by it.
  excuse: (command, other) =>
    command.op === 'revoke' && other.op === 'deleteKey' && other.id === command.key
      ? { refused: ['not_found'] }
      : {},
  open: openCredentials,
}

const isWithin = (grants: Grants, of: Grants): boolean => of === 'full' || of === grants
