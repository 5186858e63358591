import type { Page } from './frame/page.ts'
import { Overview } from './pages/overview.tsx'
import { Builds } from './pages/builds.tsx'
import { Functions } from './pages/functions.tsx'
import { Operator } from './pages/operator.tsx'
import { Runs } from './pages/runs.tsx'
import { Domains } from './pages/domains.tsx'
import { Events } from './pages/events.tsx'
import { Files } from './pages/files.tsx'
import { Secrets } from './pages/secrets.tsx'
import { History } from './pages/history.tsx'
import { Keys } from './pages/keys.tsx'
import { Run } from './pages/run.tsx'
import { Stream } from './pages/stream.tsx'
import { Streams } from './pages/streams.tsx'

/** Every page, in the order of the navigation. */
export const pages: readonly Page[] = [
  {
    name: 'Overview',
    path: '/',
    key: 'o',
    isListed: true,
    needs: { type: 'run', action: 'read' },
    content: Overview,
  },
  {
    name: 'Runs',
    path: '/runs',
    key: 'r',
    isListed: true,
    needs: { type: 'run', action: 'read' },
    content: Runs,
  },
  { name: 'Run', path: '/runs/:run_id', needs: { type: 'run', action: 'read' }, content: Run },
  {
    name: 'Stream',
    path: '/streams',
    key: 's',
    isListed: true,
    needs: { type: 'stream', action: 'read' },
    content: Streams,
  },
  {
    name: 'Stream',
    path: '/streams/:stream_id',
    needs: { type: 'stream', action: 'read' },
    content: Stream,
  },
  {
    name: 'Events',
    path: '/events',
    key: 'e',
    isListed: true,
    needs: { type: 'event', action: 'read' },
    content: Events,
  },
  {
    name: 'Functions',
    path: '/functions',
    key: 'f',
    isListed: true,
    needs: { type: 'build', action: 'read' },
    content: Functions,
  },
  {
    name: 'Builds',
    path: '/builds',
    key: 'b',
    isListed: true,
    needs: { type: 'build', action: 'read' },
    content: Builds,
  },
  {
    name: 'Files',
    path: '/files',
    key: 'i',
    isListed: true,
    needs: { type: 'file', action: 'read' },
    content: Files,
  },
  {
    name: 'Secrets',
    path: '/secrets',
    key: 'x',
    isListed: true,
    needs: { type: 'context', action: 'read' },
    content: Secrets,
  },
  { name: 'Keys and sessions', path: '/keys', key: 'k', isListed: true, content: Keys },
  {
    name: 'Domains',
    path: '/domains',
    key: 'd',
    isListed: true,
    needs: { type: 'domain', action: 'read' },
    content: Domains,
  },
  {
    name: 'Audit',
    path: '/history',
    key: 'a',
    isListed: true,
    needs: { type: 'env', action: 'read' },
    content: History,
  },
  { name: 'Operator', path: '/operator', key: 'p', isListed: true, isOperators: true, content: Operator },
]
