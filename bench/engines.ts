import { newId } from '../src/ids.ts'
import { byStream, endToEndOn } from './endToEnd.ts'
import type { Figure } from './figure.ts'
import { BenchServer } from './server.ts'
import { openEventStoreServer } from './standIn.ts'
import { webhookOn } from './webhook.ts'

/** Few enough for a read-model server that scans its documents (FerretDB). */
const EVENTS = 1200
const CALLS = 800

type Env = Readonly<Record<string, string>>

/** Unique names, because other processes may use the same engines. */
const namesOf = (eventStore: string): Record<'eventStore' | 'all', Env> => {
  const { SVC_TEST_MONGODB, SVC_TEST_S3, SVC_TEST_REDIS } = process.env
  const name = `svc_bench_${newId().slice(-12)}`
  const SVC_MASTER_KEY = Buffer.alloc(32, 1).toString('base64')
  const only = { SVC_EVENT_STORE: `${eventStore}&prefix=${name}.`, SVC_MASTER_KEY }
  return {
    eventStore: only,
    all: {
      ...only,
      ...(SVC_TEST_MONGODB && {
        SVC_READ_MODELS: SVC_TEST_MONGODB.replace(/^(\w+:\/\/[^/]+)\/[^?]*/, `$1/${name}`),
      }),
      ...(SVC_TEST_S3 && { SVC_BLOBS: SVC_TEST_S3.replace('?', `/${name}?`) }),
      ...(SVC_TEST_REDIS && { SVC_REDIS: `${SVC_TEST_REDIS}?prefix=${name}:` }),
    },
  }
}

const named = (where: string, figures: readonly Figure[], wanted: RegExp): Figure[] =>
  figures.flatMap(({ what, value, unit }) =>
    wanted.test(what) ? [{ what: `${where}: ${what.trim()}`, value, unit }] : [],
  )

const both = async (where: string, env: Env): Promise<Figure[]> => {
  const server = await BenchServer.start(undefined, env)
  try {
    return [
      ...named(where, await endToEndOn(server, EVENTS, await byStream(server)), /^event/),
      ...named(where, await webhookOn(server, CALLS, CALLS), /p50, 1 connection|64 connections/),
    ]
  } finally {
    await server.stop()
  }
}

/** A webhook that one process receives and another process runs. */
const acrossNodes = async (env: Env): Promise<Figure[]> => {
  const others = BenchServer.start(undefined, { ...env, SVC_ROLES: 'worker,projector,saga' })
  const api = await BenchServer.start(undefined, { ...env, SVC_ROLES: 'api' })
  try {
    return named(
      'api node and worker node',
      await webhookOn(api, CALLS, CALLS),
      /p50, 1 connection|64 connections/,
    )
  } finally {
    await api.stop()
    await (await others).stop()
  }
}

/** The additional time of a webhook across nodes, compared with the embedded engines, for one caller. */
const overEmbedded = (figures: readonly Figure[]): Figure[] => {
  const [embedded, across] = ['embedded', 'api node'].map((where) =>
    figures.find(({ what }) => what.startsWith(where) && what.includes('p50, 1 connection')),
  )
  if (!embedded || !across) return []
  const value = across.value - embedded.value
  return [{ what: 'api node and worker node: over embedded', value, unit: 'ms', atMost: 5 }]
}

/** The same work with embedded engines, with an external event store, with all engines external, and across nodes. */
export const engines = async (): Promise<Figure[]> => {
  const { what, url, stop } = await openEventStoreServer()
  const withAll = process.env['SVC_TEST_MONGODB'] && process.env['SVC_TEST_S3']
  try {
    const figures = [
      ...(await both('embedded', {})),
      ...(await both(`on ${what}`, namesOf(url).eventStore)),
      ...(withAll ? await both(`on ${what} and all engines`, namesOf(url).all) : []),
      ...(withAll ? await acrossNodes(namesOf(url).all) : []),
    ]
    return [...figures, ...overEmbedded(figures)]
  } finally {
    stop()
  }
}
