import { WaitingCalls } from '../../src/loops/waitingCalls.ts'
import type { Caller, CommandDeps } from '../../src/commands/deps.ts'
import type { FunctionSpec } from '../../src/events/project.ts'
import { newId } from '../../src/ids.ts'
import { DataKeys } from '../../src/secrets/dataKeys.ts'
import { Keyring } from '../../src/secrets/keyring.ts'
import { MasterKeys } from '../../src/secrets/masterKeys.ts'
import { WrappedKeys } from '../../src/secrets/wrappedKeys.ts'
import { openNode } from '../support/openNode.ts'

const masterKey = new Uint8Array(32).fill(7)

/** Everything that commands use, on embedded engines in a directory of its own. Builds have the functions of `functionsOf`. */
export const openCommands = async () => {
  const node = await openNode()
  const { aggregates, blobs, quotas, payloads, store, views } = node
  const masterKeys = new MasterKeys([masterKey])
  const wrappedKeys = new WrappedKeys(blobs, masterKeys)
  const dataKeys = new DataKeys({ keys: aggregates.dataKeys, wrapped: wrappedKeys })
  /** Functions that a build is found to have, by the hash of its zip. */
  const functionsOf = new Map<string, readonly FunctionSpec[]>()
  const deps: CommandDeps = {
    store,
    aggregates,
    views,
    blobs,
    payloads,
    runtime: {
      inspect: ({ hash }) =>
        Promise.resolve(
          functionsOf.has(hash)
            ? { ok: true, functions: functionsOf.get(hash) ?? [] }
            : { ok: false, message: 'main.js:1: no such build' },
        ),
      forget: () => Promise.resolve(),
      prewarm() {},
    },
    authenticator: { ended() {} },
    claimer: null,
    offers: null,
    keyring: new Keyring(masterKey, dataKeys),
    dataKeys,
    masterKeys,
    masterKeyFile: null,
    wrappedKeys,
    quotas,
    dns: { cname: () => Promise.resolve([]), txt: () => Promise.resolve([]) },
    certificates: null,
    domainRecheckMs: 86_400_000,
    domainsZone: 'svc.test',
    publicUrl: () => 'http://svc.test',
    tracer: null,
    stopping: new AbortController().signal,
    calls: new WaitingCalls(),
  }
  return { ...node, deps, functionsOf }
}

/** A caller of an environment, with ids of its own. */
export const callerOf = (env_id: string): Caller => ({
  cause: { env_id, correlation_id: newId(), actor: newId() },
  newId,
})
