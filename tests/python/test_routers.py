"""Routers in Python: the twin of a linear one, gradients, errors, refusals."""

from __future__ import annotations

import copy
import gc
import pickle
import subprocess
import sys
import warnings
import weakref

import numpy as np
import pytest
from conftest import tiny_scenario

import moelab

MODEL = {name: value for name, value in tiny_scenario()["model"].items() if name != "router"}
TRAIN = tiny_scenario()["train"] | {"precision": "double"}


@pytest.fixture(scope="module")
def data() -> moelab.Sample:
    return moelab.sample(tiny_scenario(), at={"data.train_samples": 64})


def linear(**options):
    return moelab.routers.python(
        lambda x, w: x @ w.T, lambda x, w, delta: (delta.T @ x, delta @ w), **options
    )


def test_the_twin_of_a_linear_router_learns_the_same(data):
    own = moelab.train(data.x, data.y, model=MODEL | {"router": linear()}, train=TRAIN)
    built_in = moelab.train(data.x, data.y, model=MODEL | {"router": {"kind": "linear"}}, train=TRAIN)
    weights = own.arrays()["router_parameters"]
    assert np.allclose(weights, built_in.arrays()["router_weight"], rtol=1e-9, atol=1e-12)
    assert np.allclose(own.route(data.test_x), built_in.route(data.test_x), rtol=1e-9)
    assert np.allclose(own.predict(data.test_x), built_in.predict(data.test_x), rtol=1e-7)
    moved = linear(parameters=np.zeros((4, 6)), trainable=False)
    frozen = moelab.train(data.x, data.y, model=MODEL | {"router": moved}, train=TRAIN)
    assert not frozen.arrays()["router_parameters"].any()
    assert np.allclose(frozen.route(data.test_x), 0.25)


def test_a_wrong_gradient_learns_something_else(data):
    wrong = moelab.routers.python(
        lambda x, w: x @ w.T, lambda x, w, delta: (-delta.T @ x, delta @ w), check_gradient=False
    )
    own = moelab.train(data.x, data.y, model=MODEL | {"router": wrong}, train=TRAIN)
    built_in = moelab.train(data.x, data.y, model=MODEL | {"router": {"kind": "linear"}}, train=TRAIN)
    assert not np.allclose(own.arrays()["router_parameters"], built_in.arrays()["router_weight"], rtol=1e-3)


def test_parameters_of_any_shape_and_stacks(data):
    def forward(x, w):
        return -((x[:, None, :] - w[0]) ** 2).sum(-1) / 2

    def backward(x, w, delta):
        away = x[:, None, :] - w[0]
        of_centres = (delta[:, :, None] * away).sum(0)
        return of_centres[None], -(delta[:, :, None] * away).sum(1)

    router = moelab.routers.python(forward, backward, parameters=np.random.default_rng(1).normal(size=(1, 4, 6)))
    deep = moelab.train(data.x, data.y, model=MODEL | {"router": router, "layers": 2}, train=TRAIN)
    assert deep.arrays()["router_parameters_layer1"].shape == (1, 4, 6)
    assert deep.route(data.test_x, layer=1).shape == (100, 4)


def test_a_module_of_pytorch(data):
    torch = pytest.importorskip("torch")
    torch.manual_seed(1)
    module = torch.nn.Linear(6, 4, bias=False).double()
    start = module.weight.detach().numpy().copy()
    own = moelab.train(data.x, data.y, model=MODEL | {"router": moelab.routers.torch(module)}, train=TRAIN)
    twin = moelab.train(data.x, data.y, model=MODEL | {"router": linear(parameters=start)}, train=TRAIN)
    left, right = own.arrays()["router_parameters"].reshape(4, 6), twin.arrays()["router_parameters"]
    assert np.allclose(left, right, rtol=1e-9, atol=1e-12)
    assert np.array_equal(module.weight.detach().numpy(), start) and not np.allclose(left, start)


def test_a_module_is_asked_as_one_function(data):
    """No dropout between scores and gradients, stored statistics, and what asks for no gradient stays."""
    torch = pytest.importorskip("torch")
    torch.manual_seed(1)
    linear_part = torch.nn.Linear(6, 4, bias=False)
    module = torch.nn.Sequential(torch.nn.BatchNorm1d(6, affine=False), torch.nn.Dropout(0.5), linear_part)
    start = linear_part.weight.detach().double().numpy().copy()
    own = moelab.train(data.x, data.y, model=MODEL | {"router": moelab.routers.torch(module)}, train=TRAIN)
    scaled = 1 / np.sqrt(1 + 1e-5)  # what the statistics of an untrained module make of inputs
    twin = moelab.routers.python(
        lambda x, w: scaled * x @ w.T, lambda x, w, delta: (scaled * delta.T @ x, None), parameters=start
    )
    expected = moelab.train(data.x, data.y, model=MODEL | {"router": twin}, train=TRAIN)
    left, right = own.arrays()["router_parameters"].reshape(4, 6), expected.arrays()["router_parameters"]
    assert np.allclose(left, right, rtol=1e-7, atol=1e-10)
    assert module.training and not module[0].running_mean.any()
    linear_part.weight.requires_grad_(False)
    with pytest.raises(moelab.UserError) as caught:
        moelab.routers.torch(module)
    assert caught.value.path == "module"
    with pytest.raises(moelab.UserError):
        moelab.routers.torch(len)


def test_estimators_copy_their_options(data):
    base = pytest.importorskip("sklearn.base")
    own = moelab.MoERegressor(model=MODEL | {"router": linear()}, train=TRAIN)
    copied = base.clone(own).fit(data.x, data.y)
    assert np.array_equal(copied.predict(data.x), own.fit(data.x, data.y).predict(data.x))


def test_documents_name_none(moelab_program):
    linear()
    assert moelab.kinds("routers") == moelab_program.json("list", "routers")


def test_what_the_functions_raise_and_return_wrongly_is_told(data):
    def refused(forward, backward=lambda x, w, delta: (delta.T @ x, None)):
        router = moelab.routers.python(forward, backward)
        return moelab.train(data.x, data.y, model=MODEL | {"router": router}, train=TRAIN)

    with pytest.raises(ZeroDivisionError):
        refused(lambda x, w: 1 / 0)
    for wrong in (lambda x, w: x, lambda x, w: "scores", lambda x, w: None, lambda x, w: (x @ w.T)[0]):
        with pytest.raises(moelab.UserError) as caught:
            refused(wrong)
        assert caught.value.path == "model.router"
    for wrong in (lambda x, w, delta: None, lambda x, w, delta: (x, x), lambda x, w, delta: (None, None)):
        with pytest.raises(moelab.UserError) as caught:
            refused(lambda x, w: x @ w.T, wrong)
        assert caught.value.path == "model.router"
    with pytest.raises(moelab.UserError):
        moelab.routers.python(3, 4)
    with pytest.raises(moelab.UserError):
        linear(parameters=np.array([np.nan]))


def test_scenarios_files_and_pickles_refuse_them(data, tmp_path, tiny):
    own = moelab.train(data.x, data.y, model=MODEL | {"router": linear()}, train=TRAIN)
    for ask in (lambda: own.save(tmp_path / "model.npz"), lambda: pickle.dumps(own)):
        with pytest.raises(moelab.UserError) as caught:
            ask()
        assert caught.value.path == "model.router"
    tiny["model"]["router"] = linear()
    with pytest.raises(moelab.UserError, match="works only with moelab.train"):
        moelab.validate(tiny)
    tiny["model"]["router"] = {"kind": "python"}
    with pytest.raises(moelab.UserError) as caught:
        moelab.validate(tiny)
    assert caught.value.path == "model.router.kind"


def test_a_gradient_is_checked(data):
    def wrong(check):
        return moelab.routers.python(
            lambda x, w: x @ w.T, lambda x, w, delta: (1.1 * delta.T @ x, delta @ w), check_gradient=check
        )

    def trained(router):
        return moelab.train(data.x, data.y, model=MODEL | {"router": router}, train=TRAIN)

    with pytest.raises(moelab.UserError, match="gradient of w") as caught:
        trained(wrong(True))
    assert caught.value.path == "model.router"
    with pytest.warns(UserWarning, match="gradient of w"):
        trained(wrong(None))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        trained(wrong(False))
        for precision in ("float", "double"):
            own = MODEL | {"router": linear(check_gradient=True), "layers": 2}
            moelab.train(data.x, data.y, model=own, train=TRAIN | {"precision": precision})
    of_inputs = moelab.routers.python(
        lambda x, w: x @ w.T, lambda x, w, delta: (delta.T @ x, -delta @ w), check_gradient=True
    )
    with pytest.raises(moelab.UserError, match="gradient of x"):
        trained(of_inputs)


def test_routers_are_released(data):
    class Held:
        pass

    def trained():
        held = Held()
        router = moelab.routers.python(
            lambda x, w, held=held: x @ w.T, lambda x, w, delta: (delta.T @ x, delta @ w)
        )
        return weakref.ref(held), moelab.train(data.x, data.y, model=MODEL | {"router": router}, train=TRAIN)

    held, model = trained()
    gc.collect()
    assert held() is not None and model.route(data.test_x).shape == (100, 4)
    del model
    gc.collect()
    assert held() is None


def test_nothing_is_told_at_exit():
    code = (
        "import moelab, numpy as np\n"
        "router = moelab.routers.python(lambda x, w: x @ w.T, lambda x, w, d: (d.T @ x, d @ w))\n"
        "model = moelab.train(np.eye(8), np.eye(8), model={'experts': 2, 'router': router,"
        " 'expert': {'kind': 'mlp', 'width': 4}, 'gating': {'train': 'soft', 'eval': 'soft'}},"
        " train={'optimizer': 'adam', 'lr': 0.01, 'batch_size': 4, 'steps': 3})\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == ""


def test_a_trained_module_comes_back(data, tmp_path):
    torch = pytest.importorskip("torch")
    torch.manual_seed(1)
    module = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 4))
    threads = torch.get_num_threads()
    inside = []
    router = moelab.routers.torch(module, check_gradient=True)
    model = moelab.train(
        data.x, data.y, model=MODEL | {"router": router}, train=TRAIN,
        callback=lambda row, now: inside.append(torch.get_num_threads()),
    )
    assert set(inside) == {1} and torch.get_num_threads() == threads
    module.load_state_dict(model.router_state_dict())
    with torch.no_grad():
        shares = torch.softmax(module(torch.from_numpy(data.test_x).float()), -1).numpy()
    assert np.allclose(shares, model.route(data.test_x), atol=1e-5)
    model.save(tmp_path / "model.npz")
    blank = moelab.routers.torch(torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 4)))
    loaded = moelab.Model.load(tmp_path / "model.npz", router=blank)
    expected = model.predict(data.test_x).tobytes()
    for again in (loaded, pickle.loads(pickle.dumps(model)), copy.copy(model), copy.deepcopy(model)):
        assert again.predict(data.test_x).tobytes() == expected
        assert again.records == model.records
    with pytest.raises(moelab.UserError) as caught:
        moelab.Model.load(tmp_path / "model.npz")
    assert caught.value.path == "router"
    with pytest.raises(moelab.UserError):
        moelab.train(data.x, data.y, model=MODEL | {"router": {"kind": "linear"}}, train=TRAIN).router_state_dict()


def test_modules_leave_no_memory_behind(data):
    torch = pytest.importorskip("torch")

    def resident() -> float:
        with open("/proc/self/statm", encoding="ascii") as stream:
            return int(stream.read().split()[1]) * 4096 / 1e6

    before = resident()
    for _ in range(10):
        moelab.routers.torch(torch.nn.Linear(1500, 1500))  # 18 MB in double
        gc.collect()
    assert resident() - before < 120


def test_messages_offer_no_router_of_python(tiny):
    linear()
    tiny["model"]["router"] = {"kind": "lin"}
    with pytest.raises(moelab.UserError) as caught:
        moelab.validate(tiny)
    assert "linear" in str(caught.value) and "python" not in str(caught.value)
