import * as assert from 'uvu/assert'
import { type Column, tableOf } from '../../src/cli/table.ts'
import { suite } from '../support/suite.ts'

interface Row {
  readonly id: string
  readonly name: string
  readonly size: number | null
}

const columns: readonly Column<Row>[] = [
  { title: 'ID', of: ({ id }) => id },
  { title: 'NAME', of: ({ name }) => name, cut: true },
  { title: 'SIZE', of: ({ size }) => size, align: 'right' },
]
const rows: readonly Row[] = [
  { id: 'a-1', name: 'short', size: 5 },
  { id: 'a-2', name: 'a name that is much too long', size: 12345 },
  { id: 'a-3', name: '', size: null },
]

const table = suite('a table')

table('aligns its columns, and leaves no spaces at the end of a line', () => {
  assert.is(
    tableOf(rows.toSpliced(1, 1), columns, Infinity),
    'ID   NAME   SIZE\na-1  short     5\na-3  -         -\n',
  )
})

table('cuts long texts to the width of the terminal, and never ids', () => {
  assert.equal(tableOf(rows, columns, 26).split('\n'), [
    'ID   NAME             SIZE',
    'a-1  short               5',
    'a-2  a name that i…  12345',
    'a-3  -                   -',
    '',
  ])
})

table('puts each row into lines of its own where the terminal is too narrow', () => {
  assert.is(
    tableOf(rows.slice(0, 2), columns, 14),
    'ID    a-1\nNAME  short\nSIZE  5\n\nID    a-2\nNAME  a name that is much too long\nSIZE  12345\n',
  )
})

table('counts wide characters as two columns, and cuts none in half', () => {
  const wide = [{ id: 'a', name: '漢字漢字漢字漢字漢字', size: 1 }]
  assert.is(tableOf(wide, columns, 24), 'ID  NAME            SIZE\na   漢字漢字漢字…      1\n')
})

table('shows control characters instead of obeying them', () => {
  const [, line] = tableOf([{ id: 'a', name: 'x\x1b[2J\n\u202ey', size: 1 }], columns, Infinity).split('\n')
  assert.is(line, 'a   x\\u001b[2J\\u000a\\u202ey     1')
})

table('without rows has its titles only', () => {
  assert.is(tableOf([], columns, 80), 'ID  NAME  SIZE\n')
})
table('has any number of rows', () => {
  const many = Array.from({ length: 200_000 }, () => ({ id: 'a', name: 'b', size: 1 }))
  assert.is(tableOf(many, columns, Infinity).split('\n').length, 200_002)
})

table.run()
