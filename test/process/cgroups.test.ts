import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import { openCgroups } from '../../src/process/cgroups.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'

const cgroups = suite('cgroups of children')

const LIMITS = { memoryMb: 600, processes: 64, cpuWeight: 50 }

/** A folder with the files of a cgroup. The kernel creates the files of a group; here they exist before. */
const hierarchy = ({ controllers = 'cpu memory pids', members = String(process.pid) } = {}) => {
  const root = tempDir()
  const own = join(root, 'svc.service')
  mkdirSync(own)
  writeFileSync(join(own, 'cgroup.controllers'), `${controllers}\n`)
  writeFileSync(join(own, 'cgroup.procs'), `${members}\n`)
  writeFileSync(join(own, 'cgroup.subtree_control'), '')
  const textOf = (path: string) => readFileSync(join(own, path), 'utf8')
  return { root, own, textOf }
}

const MEMBERSHIP = '0::/svc.service\n'

cgroups('are opened where the group of the service is delegated to it', () => {
  const { root, own, textOf } = hierarchy()
  assert.ok(openCgroups(LIMITS, root, MEMBERSHIP))
  assert.is(textOf('svc-service/cgroup.procs'), String(process.pid))
  assert.is(textOf('cgroup.subtree_control'), '+memory +pids +cpu')
  assert.ok(existsSync(own))
})

cgroups('enable only controllers that exist', () => {
  const { root, textOf } = hierarchy({ controllers: 'memory pids' })
  assert.ok(openCgroups(LIMITS, root, MEMBERSHIP))
  assert.is(textOf('cgroup.subtree_control'), '+memory +pids')
})

cgroups('are not opened in version 1, without controllers, or beside other processes', () => {
  const { root } = hierarchy()
  assert.is(openCgroups(LIMITS, root, '3:memory:/svc.service\n'), null)
  assert.is(openCgroups(LIMITS, root, '0::/another\n'), null)
  assert.is(openCgroups(LIMITS, hierarchy({ controllers: 'cpu' }).root, MEMBERSHIP), null)
  const shared = hierarchy({ members: `${process.pid}\n1` })
  assert.is(openCgroups(LIMITS, shared.root, MEMBERSHIP), null)
})

cgroups('have a group for each child, removed when it has ended', () => {
  const { root, own } = hierarchy()
  const remove = openCgroups(LIMITS, root, MEMBERSHIP)?.add(4711)
  assert.ok(existsSync(join(own, 'svc-child-4711')))
  remove?.()
  assert.not.ok(existsSync(join(own, 'svc-child-4711')))
})

cgroups.run()
