import { workerData } from 'node:worker_threads'
import { type Load, load } from './load.ts'

/** A load in a thread of its own, so that it does not delay the measurement of another tenant. */
await load(workerData as Load)
