"""One embedder used by threads, forks, spawned processes, pickles and asyncio: the same bits, and no hang."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

import pyelmo

SENTENCES = [["A", "bank", "account", "."], ["The", "river"], [], [f"word{number}" for number in range(30)]] * 8
TIMEOUT = 120  # seconds; a hang, not a slow machine

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


@pytest.fixture(scope="module")
def expected(clip_model):
    return pyelmo.load(clip_model, threads=1).embed(SENTENCES)


@pytest.fixture
def model(clip_model):
    return pyelmo.load(clip_model, threads=2)


def same(got, want):
    return len(got) == len(want) and all(map(np.array_equal, got, want))


def put_vectors(model, queue):
    queue.put(model.embed(SENTENCES))


def in_child(model, method):
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    child = context.Process(target=put_vectors, args=(model, queue), daemon=True)
    child.start()
    try:
        return queue.get(timeout=TIMEOUT)
    finally:
        child.kill()
        child.join()


def test_eight_threads_share_an_embedder(model, expected):
    model.word_table().capacity = 12  # a full table is emptied while others read it
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda number: model.embed(SENTENCES, batch_size=1 + number), range(8)))
    assert all(same(result, expected) for result in results)


@needs_fork
def test_a_fork_after_loading_embeds(model, expected):
    assert same(in_child(model, "fork"), expected)


@needs_fork
def test_a_fork_while_another_thread_embeds_does_not_hang(model, expected):
    stop = threading.Event()

    def embed_until_stopped():
        while not stop.is_set():
            model.word_table().clear()
            model.embed(SENTENCES)

    with ThreadPoolExecutor(1) as pool:
        busy = pool.submit(embed_until_stopped)
        try:
            results = [in_child(model, "fork") for _ in range(5)]
        finally:
            stop.set()
        busy.result()
    assert all(same(result, expected) for result in results)


def test_a_spawned_process_embeds(model, expected):
    model.embed(SENTENCES)
    assert same(in_child(model, "spawn"), expected)


def test_a_pickled_embedder_embeds(model, expected):
    model.embed(SENTENCES)
    assert same(pickle.loads(pickle.dumps(model)).embed(SENTENCES), expected)


def test_asyncio_may_run_several_calls_at_once(model, expected):
    async def embed_all():
        calls = (asyncio.to_thread(model.embed, SENTENCES) for _ in range(4))
        return await asyncio.wait_for(asyncio.gather(*calls), TIMEOUT)

    assert all(same(result, expected) for result in asyncio.run(embed_all()))


class Vectors(torch.utils.data.Dataset):
    def __init__(self, model):
        self.model = model

    def __len__(self):
        return len(SENTENCES)

    def __getitem__(self, number):
        return torch.from_numpy(self.model.embed([SENTENCES[number]])[0])


def test_the_workers_of_a_data_loader_embed(model, expected):
    model.embed(SENTENCES)
    loader = DataLoader(Vectors(model), batch_size=None, num_workers=1, timeout=TIMEOUT)
    assert same([array.numpy() for array in loader], expected)
