import { openHints } from '../../src/adapters/embedded/hints.ts'
import { newApiToken } from '../../src/access/tokens.ts'
import { openInstallation } from '../../src/commands/installation/openInstallation.ts'
import { readInstallation } from '../../src/commands/installation/readInstallation.ts'
import { MasterKeys } from '../../src/secrets/masterKeys.ts'
import { WrappedKeys } from '../../src/secrets/wrappedKeys.ts'
import { Authenticator } from '../../src/access/authenticator.ts'
import { createEnv } from '../../src/commands/orgs/createEnv.ts'
import { createOrg } from '../../src/commands/orgs/createOrg.ts'
import type { Caller, CommandDeps } from '../../src/commands/deps.ts'
import { type Aggregates, openAggregates } from '../../src/domain/aggregates.ts'
import { AppError } from '../../src/errors.ts'
import type { Plan } from '../../src/events/org.ts'
import { derivedIdBeside, newId } from '../../src/ids.ts'
import type { EventStore } from '../../src/ports/eventStore.ts'
import { DataKeys } from '../../src/secrets/dataKeys.ts'
import { Keyring } from '../../src/secrets/keyring.ts'
import { openCommands } from '../commands/openCommands.ts'
import { forwarding } from '../support/forwarding.ts'
import type { Failure } from './play.ts'

/** A node of the service: its own aggregates and caches, on the engines that all nodes share. */
export type ModelNode = Omit<CommandDeps, 'authenticator'> & { readonly authenticator: Authenticator }

/** Replaces parts of a node by faulty ones, to show that the model finds them. */
export interface Fault {
  readonly store?: (store: EventStore) => EventStore
  readonly aggregates?: (aggregates: Aggregates, store: EventStore) => Aggregates
}

export type World = Awaited<ReturnType<typeof openWorld>>

/** Two nodes on one embedded event store. `random` decides how their reads and appends interleave. */
export const openWorld = async (random: (below: number) => number, fault: Fault = {}) => {
  const shared = await openCommands()
  const { aggregates, blobs } = shared
  const first = Buffer.alloc(32, 1)
  const masterKeys: MasterKeys = new MasterKeys(
    [first],
    async () => (await readInstallation({ aggregates }))?.current.id ?? masterKeys.configured,
  )
  const given = { masterKey: first, apiKey: newApiToken(newId()), source: 'SVC_MASTER_KEY' }
  const { rootKey } = await openInstallation({ store: shared.store, blobs, aggregates, masterKeys }, given)
  const wrappedKeys = new WrappedKeys(blobs, masterKeys)
  const hints = openHints()
  /** CNAME records by name. */
  const dns = new Map<string, string>()

  const nodeOn = (raw: EventStore): ModelNode => {
    const store = fault.store ? fault.store(raw) : raw
    const own = openAggregates(store)
    const aggregates = fault.aggregates ? fault.aggregates(own, store) : own
    const dataKeys = new DataKeys({ keys: aggregates.dataKeys, wrapped: wrappedKeys })
    const keyring = new Keyring(rootKey, dataKeys)
    const authenticator = new Authenticator({
      store,
      views: shared.views,
      hints,
      keyring,
      onUse: () => Promise.resolve(),
    })
    return {
      ...shared.deps,
      store,
      aggregates,
      dataKeys,
      keyring,
      wrappedKeys,
      masterKeys,
      masterKeyFile: { replaceMasterKey() {}, dropPreviousMasterKey() {} },
      authenticator,
      dns: {
        txt: () => Promise.resolve([]),
        cname: (name) => {
          const target = dns.get(name)
          return Promise.resolve(target === undefined ? [] : [target])
        },
      },
    }
  }
  const nodes = [0, 1].map(() => {
    const node = nodeOn(interleaved(shared.store, random))
    void node.authenticator.watch(shared.signal).catch(() => {})
    void node.dataKeys.watch(shared.store, shared.signal).catch(() => {})
    return node
  })
  let orgs = 0

  return {
    dns,
    functionsOf: shared.functionsOf,
    views: shared.views,
    store: shared.store,
    dir: shared.dir,
    node: (index: number): ModelNode => nodes[index] as ModelNode,
    failing: (failure: Failure): ModelNode => nodeOn(failingStore(shared.store, failure)),
    /** Creates an environment of an organization of its own. */
    async openEnv(plan: Plan = 'self_host'): Promise<{ env_id: string; slug: string; org_id: string }> {
      const slug = `org-${++orgs}`
      const cause = { correlation_id: newId() }
      const { org_id } = await createOrg(shared.deps, { slug, plan }, cause)
      const { env_id } = await createEnv(shared.deps, { org: slug, name: 'dev' }, cause)
      await shared.views.settled()
      return { env_id, slug, org_id }
    },
    close: () => shared.close(),
  }
}

/** The ids of a scenario: a name always stands for the same id. */
export class Ids {
  readonly #base = newId()
  readonly #names = new Map<string, string>()

  /** The id of a name. */
  of(name: string): string {
    const id = derivedIdBeside(this.#base, name)
    this.#names.set(id, name)
    return id
  }

  /** The name of an id; the id itself if it has none. */
  nameOf(id: string): string {
    return this.#names.get(id) ?? id
  }

  /** A caller whose requests have derived ids, as under an `Idempotency-Key`. */
  caller(env_id: string, request: string): Caller {
    return {
      cause: { env_id, correlation_id: this.of(`${request} correlation`), actor: this.of('actor') },
      newId: (what) => this.of(`${request} ${what}`),
    }
  }
}

/** Lets reads and appends of concurrent commands overtake each other. */
const interleaved = (store: EventStore, random: (below: number) => number): EventStore => {
  const pause = async (): Promise<void> => {
    for (let turns = random(3); turns > 0; turns--) await new Promise((resolve) => setImmediate(resolve))
  }
  return forwarding(store, {
    async append(...args) {
      await pause()
      const appended = await store.append(...args)
      await pause()
      return appended
    },
    async *read(...args) {
      await pause()
      yield* store.read(...args)
    },
  })
}

/** A store that fails at one append. If its node is dead then, it neither reads nor appends any more. */
const failingStore = (store: EventStore, { append: at, stored, lives }: Failure): EventStore => {
  let appends = 0
  let isDead = false
  const fail = (): never => {
    throw new AppError('unavailable', 'The node does not reach the log')
  }
  return forwarding(store, {
    async append(...args) {
      if (isDead) fail()
      const isIt = appends++ === at
      isDead = isIt && !lives
      if (isIt && !stored) fail()
      const appended = await store.append(...args)
      return isIt ? fail() : appended
    },
    async *read(...args) {
      if (isDead) fail()
      yield* store.read(...args)
    },
  })
}
